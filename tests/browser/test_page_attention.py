"""The page Attention: every number that it shows is what regard computes, before and after numbers are edited."""
# ruff: noqa: RUF001

import json
import math
from urllib.parse import urlencode

import pytest
import torch

from regard import attend, mask, score

SCORES = ["dot", "scaled_dot", "cosine", "general", "additive", "concat", "location"]


def opened(visit, query="", **options):
    page = visit(f"/attention{query}", **options)
    page.get_by_role("heading", name="One step of attention").wait_for()
    return page


def numbers(page, table, column=None):
    """The exact numbers of a table, by row; of one column, where it is given."""
    cells = "td" if column is None else f"td:nth-of-type({column})"
    rows = page.get_by_role("region", name=table, exact=True).locator("tbody tr:not(.sum)").all()
    return [row.locator(f"{cells} data").evaluate_all("(all) => all.map((each) => Number(each.value))") for row in rows]


def sum_of(page, table):
    region = page.get_by_role("region", name=table, exact=True)
    return region.locator(".sum data").evaluate_all("(all) => all.map((each) => Number(each.value))")


def grid(page, name):
    """The numbers of a matrix that can be edited."""
    rows = page.locator("table.grid", has=page.locator(f"caption:text-is('{name}')")).locator("tr").all()
    values = [row.locator("input").evaluate_all("(all) => all.map((each) => Number(each.value))") for row in rows]
    return torch.tensor(values, dtype=torch.float)


def test_the_queries_of_the_lecture_find_one_row_and_two_and_a_mistyped_id_still_finds_its_row(visit):
    page = opened(visit)
    table = page.get_by_role("region", name="PERSONS", exact=True)
    assert table.locator(".sum td").text_content() == "1.00 · Ali Ahmadi + 1.00 · Ashkan Mohammadi"
    page.get_by_role("button", name="WHERE ID = '015843268901'").click()
    assert table.locator(".sum td").text_content() == "1.00 · Mohammad Reza Ali Mohammadi"
    page.get_by_role("button", name="a mistyped ID").click()
    matches = torch.tensor(numbers(page, "PERSONS", 1), dtype=torch.float).squeeze(1)
    assert matches[[0, 2]].tolist() == [11, 10]
    weights = torch.tensor(numbers(page, "PERSONS", 2)).squeeze(1)
    assert torch.allclose(weights, matches.softmax(0), atol=1e-6)
    page.get_by_label("Query: an ID").fill("9")
    page.get_by_label("Match", exact=True).select_option("prefix")
    page.get_by_label("Weights", exact=True).select_option("normalised")
    assert table.locator(".sum td").text_content() == "nothing: no key matches"
    assert "id=9" in page.url


def test_the_encoder_reads_four_words_in_four_time_steps(visit):
    page = opened(visit, "?time=0")
    for time in range(1, 5):
        page.get_by_role("button", name="Next word").click()
        assert len(numbers(page, "States of the encoder")) == time
    page.get_by_text("All four words are read.").wait_for()
    weight, recurrent, inputs = (grid(page, name) for name in ("W", "U", "embedding"))
    state, states = torch.zeros(3), numbers(page, "States of the encoder", 3)
    for word, shown in zip(inputs, states, strict=True):
        state = torch.tanh(weight @ word + recurrent @ state)
        assert torch.allclose(state, torch.tensor(shown), atol=1e-6)
    page.locator("summary", has_text="Edit the embedding").click()
    page.get_by_label("embedding, How, column 1").fill("-2")
    first = torch.tanh(weight @ torch.tensor([-2.0, 0.0, 0.5]))
    assert torch.allclose(first, torch.tensor(numbers(page, "States of the encoder", 3)[0]), atol=1e-6)
    assert numbers(page, "Attention of the decoder", 1) == numbers(page, "States of the encoder", 3), "one encoder"
    shown = page.url
    page.goto(shown)
    page.get_by_role("button", name="Reset all numbers").wait_for()
    assert numbers(page, "States of the encoder", 3)[0] == pytest.approx(first.tolist(), abs=1e-6), "it is a link"
    page.get_by_role("button", name="Reset all numbers").click()
    assert numbers(page, "States of the encoder", 3) == states
    assert "?" not in page.url


@pytest.mark.parametrize("name", SCORES)
def test_every_score_is_that_of_the_library(visit, name):
    page = opened(visit, f"?score={name}")
    states, state = (
        torch.tensor(numbers(page, "Attention of the decoder", 1)),
        grid(page, "s, the state of the decoder"),
    )
    chosen = made(page, name)
    with torch.no_grad():
        context, weights = attend(state, states, score=chosen, weights=True)
    assert torch.allclose(torch.tensor(numbers(page, "Attention of the decoder", 4)).T, weights, atol=1e-5)
    assert torch.allclose(torch.tensor(sum_of(page, "Attention of the decoder")), context[0], atol=1e-5)


def made(page, name):
    """A score of the library with the parameters on the page."""
    if name in ("dot", "scaled_dot"):
        return getattr(score, name)
    if name == "cosine":
        return score.Cosine(1.0)
    if name == "general":
        return filled(score.General(3, 3), {"layer.weight": grid(page, "Wₐ of general")})
    if name == "location":
        return filled(score.Location(3, 4), {"layer.weight": grid(page, "Wₗ, a row for each place")})
    query, key, direction = grid(page, "Wₐ"), grid(page, "Uₐ"), grid(page, "v")[0]
    if name == "concat":
        joined = {"layer.weight": torch.cat([query, key], dim=1), "direction": direction}
        return filled(score.Concat(3, 3, 2), joined)
    parameters = {"query_layer.weight": query, "key_layer.weight": key, "direction": direction}
    return filled(score.Additive(3, 3, 2), parameters)


def filled(module, parameters):
    module.load_state_dict(parameters)
    return module


def test_the_dot_product_needs_one_space_and_general_unites_two(visit):
    page = opened(visit, "?score=dot")
    dot = [row[0] for row in numbers(page, "Attention of the decoder", 4)]
    page.get_by_label("Score", exact=True).select_option("general")
    general = [row[0] for row in numbers(page, "Attention of the decoder", 4)]
    assert (dot.index(max(dot)), general.index(max(general))) == (1, 0), "dot looks at are, general at How"
    page.get_by_role("button", name="you", exact=True).click()
    assert page.locator(".worked").first.text_content().startswith("you: score = s′ Wₐ h")


def test_apple_attends_to_the_words_before_it_with_the_weights_of_the_lecture(visit):
    page = opened(visit)
    weights = [row[0] for row in numbers(page, "Self-attention", 5)]
    assert [round(weight, 2) for weight in weights] == [0.1, 0.1, 0.5, 0.1, 0.2, 0]
    assert "masked" in page.get_by_role("region", name="Self-attention", exact=True).text_content()
    assert page.locator(".worked").last.text_content().startswith("apple asks eating: score = 1.61 · 1.00 + ")
    page.locator("summary", has_text="Edit the words").click()
    page.get_by_label("Wq, row 3, column 1").fill("9")
    page.get_by_label("Wq, row 3, column 1").fill("100")
    assert page.get_by_label("Wq, row 3, column 1").get_attribute("aria-invalid") == "true"
    assert [row[0] for row in numbers(page, "Self-attention", 5)][2] > 0.99, "it is 9"


@pytest.mark.parametrize("heads", [1, 2])
def test_self_attention_is_that_of_multi_head(visit, heads):
    query = urlencode({"heads": heads, "head": heads - 1, "mask": "causal", "scaled": "true"})
    page = opened(visit, f"?{query}")
    x, *matrices = (grid(page, name) for name in ("x, the words", "Wq", "Wk", "Wv"))
    q, k, v = (x @ matrix for matrix in matrices)
    size = 4 // heads
    own = slice((heads - 1) * size, heads * size)
    context, weights = attend(q[:, own], k[:, own], v[:, own], mask=mask.causal(6), weights=True)
    assert torch.allclose(torch.tensor(numbers(page, "Weights of all words")), weights, atol=1e-6)
    assert torch.allclose(torch.tensor(sum_of(page, "Self-attention")), context[5], atol=1e-6)
    table = page.get_by_role("region", name="Weights of all words", exact=True)
    table.get_by_role("button", name="eating").click()
    assert table.get_by_role("button", name="eating").evaluate("(node) => node === document.activeElement")
    assert torch.allclose(torch.tensor(sum_of(page, "Self-attention")), context[2], atol=1e-6)


def test_an_address_with_numbers_that_do_not_fit_shows_the_first_numbers(visit):
    wrong = {"score": "none", "heads": 7, "word": -3, "numbers": json.dumps({"s": [[1, 2]], "Wq": "no", "nothing": 1})}
    page = opened(visit, f"?{urlencode(wrong)}")
    assert grid(page, "s, the state of the decoder").shape == (1, 3)
    assert page.get_by_label("Score", exact=True).input_value() == "general"
    assert math.isclose(sum(row[0] for row in numbers(page, "Attention of the decoder", 4)), 1, rel_tol=1e-6)
