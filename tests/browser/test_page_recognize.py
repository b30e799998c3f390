"""The page Recognize: a kernel step by step, a list of layers with live sizes, maps of every layer."""
# ruff: noqa: RUF001

import numpy as np
import pytest
import torch
from browser.showing import answer_of
from torch.nn import functional


def opened(visit, query="", **options):
    page = visit(f"/recognize{query}", **options)
    page.locator(".layergroup").first.wait_for()
    page.locator(".layers td.output", has_text="×").first.wait_for()
    return page


def outputs(page):
    return page.locator(".layers td.output").all_text_contents()


def test_a_kernel_slides_step_by_step(visit):
    page = opened(visit)
    assert page.get_by_text("Output 4 × 4").is_visible()
    page.get_by_role("button", name="Next step").click()
    assert "step=1" in page.url
    page.get_by_label("Step", exact=True).fill("6")
    # Twos to the right of the window's middle less those to its left.
    page.get_by_text("Step 7 of 16: 2·(−1) + 2·(−1) + 2·1 + 2·(−1) + 2·1 = −2.").wait_for()
    page.get_by_label("Kernel", exact=True).fill("7")
    page.get_by_label("Zero padding").fill("0")
    page.get_by_text("Output 1 × 1").wait_for()
    page.get_by_label("Input size").fill("6")
    page.get_by_text("A kernel of 7 does not fit on 6 + 2 · 0 = 6 pixels").wait_for()
    assert page.get_by_role("button", name="Play").is_disabled()
    page.get_by_label("Input size").fill("10")
    page.get_by_role("button", name="Play").click()
    page.get_by_text("Step 2 of 4").wait_for()
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Kernel", exact=True).fill("9")
    page.get_by_text("Output 1 × 1").wait_for()
    page.get_by_label("Kernel", exact=True).fill("13")
    assert page.get_by_label("Kernel", exact=True).get_attribute("aria-invalid") == "true", "it is not just ignored"


def test_a_kernel_of_several_channels_is_summed_over_them_and_can_be_edited(visit):
    page = opened(visit, "?channels=3&step=5")
    assert page.locator(".kernel svg").count() == 3 + 3 + 1
    page.locator("summary", has_text="Edit the kernel").click()
    page.get_by_label("b, row 1, column 1", exact=True).fill("0.5")
    page.get_by_label("kernel of channel 3, row 1, column 2", exact=True).fill("-1.5")
    generated = page.locator(".kernel svg", has_text="output").locator(".digit.now").text_content()
    numbers = np.zeros((1, 3, 7, 7))
    rows, columns = np.mgrid[:7, :7]
    numbers[0] = [2.0 * (np.hypot(rows - 3, columns - 3) <= 2.8), columns >= 3.5, rows % 2]
    kernels = np.stack([np.tile([-1.0, 0, 1], (3, 1)), np.tile([-1.0, 0, 1], (3, 1)).T, np.zeros((3, 3))])
    kernels[2, 1, 1], kernels[2, 0, 1] = 1, -1.5
    inputs, kernel = torch.tensor(numbers), torch.tensor(kernels)[None]
    expected = functional.conv2d(inputs, kernel, torch.tensor([0.5], dtype=torch.double), stride=2, padding=1)
    assert float(generated.replace("−", "-")) == pytest.approx(expected.flatten()[5].item())
    assert "bias=0.5" in page.url
    page.reload()
    page.get_by_label("b, row 1, column 1", exact=True).wait_for(state="attached")
    assert page.locator(".kernel svg", has_text="output").locator(".digit.now").text_content() == generated


def test_a_pooling_keeps_the_largest_or_the_mean_of_each_channel(visit):
    page = opened(visit, "?operation=max_pool&channels=2&step=5")
    page.get_by_text("the largest of 0, 2, 2, 2, 2, 2, 2, 2, 2 in the first channel is 2.").wait_for()
    assert page.locator(".kernel svg").count() == 2 + 2, "no kernels"
    assert page.locator(".kernel svg", has_text="input 1").locator(".digit.now").count() == 1, "the cell that is taken"
    page.get_by_label("Operation").select_option("average_pool")
    page.get_by_label("Step", exact=True).fill("5")
    page.get_by_text("the mean of 0, 2, 2, 2, 2, 2, 2, 2, 2 in the first channel is 1.78.").wait_for()
    page.get_by_label("Zero padding").fill("2")
    page.get_by_text("takes a padding of at most 1").wait_for()


def test_a_list_of_layers_is_tabulated_while_it_is_edited(visit):
    page = opened(visit)
    assert outputs(page) == ["6 × 28 × 28", "6 × 14 × 14", "16 × 10 × 10", "16 × 5 × 5", "120 × 1 × 1"]
    kernel = page.get_by_label("kernel of layer 3")
    answer = answer_of(page, "/v1/recognize/table", lambda: kernel.fill("9"))
    page.locator("tr.impossible").wait_for()
    assert page.locator("tr.impossible td.note").text_content() == f"Impossible: {answer['problem']['message']}"
    assert outputs(page)[2:] == ["16 × 6 × 6", "16 × 3 × 3", "–"]
    page.get_by_role("button", name="Remove layer 5").click()
    page.locator("tr.impossible").wait_for(state="detached")
    page.get_by_role("button", name="Add a convolution").click()
    page.locator(".layers tr:nth-child(5) td.output", has_text="8 × 3 × 3").wait_for()
    assert "layers=c6k5s1p2_mk2s2p0_c16k9s1p0_mk2s2p0_c8k3s1p1" in page.url
    again = page.url
    page.goto(again)
    page.locator(".layers tr:nth-child(5) td.output", has_text="8 × 3 × 3").wait_for()
    found = answer_of(page, "/v1/recognize/table", lambda: page.get_by_label("Start from").select_option("alexnet"))
    page.locator("td.output", has_text="256 × 6 × 6").wait_for()
    total = page.get_by_text("parameters and").text_content()
    assert total.startswith(f"{found['parameters']:,} parameters")
    reach = page.locator(".layers td.reach").all_text_contents()
    assert reach == [str(row["field"]) for row in found["rows"]]


def test_an_empty_list_stays_empty_and_a_field_as_large_as_the_image_is_all_of_it(visit):
    page = opened(visit, "?layers=c8k28s1p0")
    page.get_by_text("28 × 28 pixels: all of the image.").wait_for()
    page.get_by_label("Width", exact=True).fill("20")
    page.get_by_label("kernel of layer 1").fill("20")
    page.get_by_label("padding of layer 1").fill("4")
    page.get_by_label("kernel of layer 1").fill("28")
    page.get_by_text("28 × 28 pixels: all of the image, and more.").wait_for()
    page.get_by_label("kernel of layer 1").fill("99")
    page.get_by_text("The first layer is impossible.").wait_for()
    page.get_by_role("button", name="Remove layer 1").click()
    page.get_by_text("No layers yet.").wait_for()
    page.reload()
    page.get_by_text("No layers yet.").wait_for()


def test_maps_of_every_layer_of_a_digit_and_of_a_scene(visit):
    page = opened(visit)
    answer = answer_of(
        page, "/v1/recognize/maps", lambda: page.get_by_role("button", name="Example: the digit 8").click()
    )
    page.locator(".guesses b", has_text="8").first.wait_for()
    assert page.locator(".layergroup").count() == len(answer["layers"]) == 8
    page.locator(".trust .verdict", has_text="This model has no attention").wait_for()
    page.get_by_role("button", name="Layer 4, map 2", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_text("Map 2 of 16").wait_for()
    numbers = page.locator(".enlarged data").evaluate_all("(all) => all.map((each) => Number(each.value))")
    values = [value for row in answer["layers"][3]["maps"][1] for value in row]
    assert numbers == pytest.approx([min(values), max(values)])
    assert page.locator(".kernels canvas").count() == 4
    assert "layer=3" in page.url
    page.get_by_role("button", name="Example: a small green star").click()
    page.get_by_text("What the network sees: 3 × 64 × 64").wait_for()
    assert not page.locator(".trust").is_visible(), "the attention of a captioner is not shown here"
    assert page.get_by_label("Model", exact=True).input_value() == "scenes"


def test_on_a_phone_the_input_the_kernel_and_the_output_are_all_in_sight(visit):
    page = opened(visit, width=390)
    boxes = [each.bounding_box() for each in page.locator(".kernel svg").all()]
    assert len(boxes) == 3
    assert max(box["x"] + box["width"] for box in boxes) <= 390
    _, kernel, output = (each.locator("rect").first.bounding_box() for each in page.locator(".kernel svg").all())
    assert kernel["y"] == pytest.approx(output["y"], abs=1), "both begin at the top"
    cells = [each.bounding_box() for each in page.locator(".layers :is(input, select, button, .output)").all()]
    assert len(cells) > 5
    assert max(box["x"] + box["width"] for box in cells) <= 390, "so is all of a layer, without scrolling sideways"
