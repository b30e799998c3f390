"""The Translate page: words, changes, the search, two models and the right links, with the numbers of the API."""

import json
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from browser.showing import answer_of, saved_trace, settle

TEXT = "He is happy."
PAGE = f"/translate?text={quote(TEXT)}"
ROUTE = "/v1/translate"


@pytest.fixture
def api(workbench, workbench_tab):
    """Ask the server itself."""

    def ask(path="/inspect", **body):
        answer = workbench_tab[0].request.post(f"{workbench}{ROUTE}{path}", data={"input": TEXT, **body})
        assert answer.ok, answer.text()
        return answer.json()

    return ask


def words(page):
    return page.locator(".words .word").all_text_contents()


def numbers(page, selector):
    return [float(each) for each in page.locator(f"{selector} data").evaluate_all("(all) => all.map((e) => e.value)")]


def wait_for_change(page):
    page.locator(".change").wait_for()
    settle(page)


def test_a_sentence_is_translated_with_the_likeliest_words(visit, api):
    page = visit("/translate")
    page.locator(".words", has_text="accord").wait_for()
    assert page.get_by_label("Sentence").input_value().startswith("The agreement on"), "it opens with an example"
    page.get_by_label("Sentence").fill("He is happy. She sleeps.")
    page.get_by_label("Sentence").press("Enter")
    page.get_by_label("Sentence 1 of 2").wait_for()
    before = api(input="He is happy. She sleeps.")["before"]
    shown = ["(end)" if each["text"] == "</s>" else each["text"] for each in before["words"]]
    assert words(page) == shown
    page.locator(".words .word").nth(2).click()
    candidates = before["words"][2]["likeliest"]
    assert numbers(page, ".likeliest") == pytest.approx([each["probability"] for each in candidates], abs=1e-5)
    assert page.locator(".likeliest bdi").all_text_contents() == [each["text"] for each in candidates]
    page.locator(".words .word").nth(0).hover()
    assert page.locator(".wordtip td:first-child").all_text_contents() == [
        each["text"] for each in before["words"][0]["likeliest"]
    ]
    trace = saved_trace(page, "matrix")
    assert trace.source == ("He", "is", "happy.", "</s>")
    page.get_by_label("Sentence 1 of 2").select_option("1")
    page.locator(".words", has_text="Elle").wait_for()
    assert parse_qs(urlsplit(page.url).query)["sentence"] == ["1"]


def test_another_word_changes_what_follows_and_the_address_keeps_it(visit, api):
    page = visit(f"{PAGE}&at=2")
    page.locator(".candidate").nth(1).click()
    wait_for_change(page)
    plain = api()["before"]
    forced = plain["words"][2]["likeliest"][1]
    prefix = [*plain["tokens"][: plain["words"][2]["first"]], *forced["tokens"]]
    difference = api("/change", change={"prefix": prefix})
    assert words(page)[2] == forced["text"]
    assert page.locator(".edits ins").all_text_contents()[0].startswith(forced["text"])
    expected = [plain["log_prob"], difference["after"]["log_prob"]]
    assert numbers(page, ".logprobs") == pytest.approx(expected, abs=1e-4)
    page.reload()
    wait_for_change(page)
    assert words(page)[2] == forced["text"]
    page.get_by_label("Another word").fill("triste")
    page.get_by_label("Another word").press("Enter")
    page.locator(".words", has_text="triste").wait_for()
    page.locator(".words .word").first.click()
    page.get_by_label("Another word").fill("triste")
    page.get_by_label("Another word").press("Enter")
    page.get_by_text("it must begin with “triste”").wait_for()
    weight = page.locator(".change .quiet").evaluate("(node) => getComputedStyle(node).fontWeight")
    assert weight == "400", "only what is to be seen first is bold"
    page.get_by_role("button", name="Reset").click()
    page.locator(".change").wait_for(state="detached")
    assert "prefix" not in page.url
    assert words(page)[2] == plain["words"][2]["text"]


def test_attention_is_moved_with_the_keyboard_and_all_of_it_with_a_click(visit, api):
    page = visit(f"{PAGE}&at=2")
    slider = page.get_by_label("Attention to He")
    slider.focus()
    slider.press("End")
    wait_for_change(page)
    weights = json.loads(parse_qs(urlsplit(page.url).query)["attention"][0])
    assert weights[0]["weights"][0] == 1
    plain = api()["before"]
    step = plain["words"][2]["step"]
    change = {"prefix": plain["tokens"][:step], "attention": {weights[0]["step"]: weights[0]["weights"]}}
    found = api("/change", change=change)
    expected = [plain["log_prob"], found["before_under_change"], found["after_unchanged"], found["after"]["log_prob"]]
    assert numbers(page, ".logprobs") == pytest.approx(expected, abs=1e-4)
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "Attention to He"
    page.get_by_role("button", name="is", exact=True).click()
    page.locator(".sliders li", has=page.get_by_label("Attention to is")).get_by_text("100 %").wait_for()
    assert "moved by you" in page.locator(".moving h3").text_content()


def test_trust_is_measured_again_for_words_of_the_user_and_not_for_attention_that_is_not_the_models(visit, workbench):
    page = visit(f"{PAGE}&at=2")
    page.locator(".trust .measure").first.wait_for()
    found = answer_of(page, "/v1/faithfulness", lambda: page.locator(".candidate").nth(1).click())
    started = " ".join(words(page)[:3])
    asked = {"verb": "translate", "input": TEXT, "options": {"beam": 5, "prefix": started}}
    assert page.request.post(f"{workbench}/v1/faithfulness", data=asked).json()["ablation"] == found["ablation"]
    with page.expect_request(lambda request: request.url.endswith("/v1/faithfulness")):
        page.get_by_role("button", name="is", exact=True).click()
    page.locator(".trust", has_text="Measured without your change").wait_for()


def test_how_attention_is_shown_outlasts_a_change_and_a_reload(visit):
    page = visit(f"{PAGE}&at=2")
    page.get_by_role("tab", name="Lines").click()
    page.locator("attention-lines summary", has_text="Options").click()
    page.get_by_label("Hide special tokens").check()
    page.locator(".candidate").nth(1).click()
    wait_for_change(page)
    for _ in range(2):
        page.locator("attention-lines .picture svg").wait_for()
        settle(page)
        assert "</s>" not in page.locator("attention-lines .picture svg text").all_text_contents()
        page.reload()
        wait_for_change(page)
    page.get_by_role("tab", name="Matrix").click()
    assert "view=" not in page.url


def test_each_source_word_has_its_slider_on_one_line(visit):
    for width in (1200, 360):
        page = visit(f"{PAGE}&at=1", width=width)
        page.locator(".sliders li").first.wait_for()
        assert page.get_by_text("< 0.1 %").count() > 0
        heights = page.locator(".sliders li").evaluate_all("(all) => all.map((each) => each.offsetHeight)")
        assert len(set(heights)) == 1


def test_the_search_is_a_tree_with_attention_for_each_branch(visit, api):
    page = visit(f"{PAGE}&beam=3&tab=beam")
    page.locator(".tree .node").first.wait_for()
    tree = api("/tree", search={"beam": 3})
    nodes = tree["nodes"]
    assert page.locator(".tree .node").count() == len(nodes)
    assert page.locator(".tree .node.pruned").count() == sum(each["fate"] == "pruned" for each in nodes)
    best = next(each for each in nodes if each["rank"] == 0)
    assert numbers(page, ".branch") == pytest.approx([best["total"]])
    for form in ("JSON", "SVG"):
        with page.expect_download() as download:
            page.locator(".files").get_by_role("button", name=form).click()
        content = download.value.path().read_text(encoding="utf-8")
        if form == "JSON":
            assert json.loads(content) == tree
        else:
            assert content.count("data-node=") == len(nodes)
    page.locator(".tree").press("ArrowLeft")
    parent = nodes[best["parent"]]
    assert numbers(page, ".branch") == pytest.approx([parent["total"]])
    pruned = next(index for index, each in enumerate(nodes) if each["fate"] == "pruned" and each["depth"] == 3)
    page.locator(f".tree [data-node='{pruned}']").click()
    assert "pruned" in page.locator(".branch").text_content()
    settle(page)
    shown = page.locator(".beam attention-matrix").evaluate("(element) => element.trace.json.maps[0].weights.at(-1)")
    assert shown == pytest.approx(tree["weights"][nodes[pruned]["attention"]])


def test_heads_of_a_transformer_are_removed(visit, api):
    page = visit("/translate?model=small-transformer&text=a+dog&tab=heads&beam=1")
    heads = page.locator(".head")
    heads.first.wait_for()
    assert heads.count() == page.locator(".head canvas").count() == 12, "each is seen before it is removed"
    page.get_by_role("button", name="cross 2.1").click()
    wait_for_change(page)
    body = {"model": "small-transformer", "input": "a dog", "search": {"beam": 1}}
    answer, found = api(**body), api("/change", change={"heads": ["cross 2.1"]}, **body)
    expected = [answer["before"]["log_prob"], found["before_under_change"]]
    assert numbers(page, ".logprobs")[:2] == pytest.approx(expected, abs=1e-4)
    assert page.get_by_role("button", name="cross 2.1, removed").get_attribute("aria-pressed") == "true"


def test_two_models_and_the_right_links_stand_beside_each_other(visit, api):
    page = visit(f"{PAGE}&tab=compare")
    page.locator(".side").first.wait_for()
    found = api("/compare", second_change={"align": "hard"})
    assert page.locator(".side .hypothesis").all_text_contents() == [found["first"]["text"], found["second"]["text"]]
    assert numbers(page, ".side") == pytest.approx([found["first"]["log_prob"], found["second"]["log_prob"]], abs=1e-4)
    page.get_by_role("tab", name="Compare").press("ArrowRight")
    page.locator(".scores").wait_for()
    answer = page.request.post(f"{page.url.split('/translate')[0]}{ROUTE}/gold", data={"number": 0}).json()
    assert numbers(page, ".scores") == pytest.approx([answer[name] for name in ("error_rate", "precision", "recall")])
    settle(page)
    assert page.locator("attention-matrix rect.sure").count() == len(answer["sure"])
    assert page.locator("attention-matrix rect.possible").count() == len(answer["possible"]) - len(answer["sure"])
    page.get_by_role("button", name="Next example").click()
    page.get_by_text("Example 2:").wait_for()


def test_what_is_not_in_the_vocabulary_is_said(visit):
    page = visit(f"{PAGE}&at=1&model=babel")
    page.get_by_label("Another word").fill("zzqx 😀")
    page.get_by_role("button", name="Put it here").click()
    wait_for_change(page)
    page.get_by_text("⁇ stands for what is not in the model's vocabulary.").wait_for()
    assert all(words(page))


def test_rare_characters_are_spelled_what_is_not_compared_is_said_and_an_empty_sentence_is_forgotten(visit):
    page = visit(f"{PAGE}&at=1&tab=compare&beam=99")
    page.get_by_label("Another word").fill("zzqx 😀")
    page.get_by_role("button", name="Put it here").click()
    wait_for_change(page)
    assert "zzqx" in words(page)
    assert "⁇" not in "".join(words(page))
    page.get_by_text("The translations without your change are compared.").wait_for()
    page.get_by_role("button", name="Reset").click()
    page.locator(".change").wait_for(state="detached")
    assert page.get_by_text("The translations without your change").count() == 0
    page.get_by_label("Sentence").fill("")
    page.get_by_label("Sentence").press("Enter")
    page.get_by_text("Type a sentence or take an example").wait_for()
    assert "text=" not in page.url


def test_a_late_answer_does_not_replace_a_newer_one(visit):
    page = visit(f"{PAGE}&tab=compare")
    page.locator(".side").first.wait_for()
    late = []
    page.route(f"**{ROUTE}/compare", lambda route: route.continue_() if late else late.append(route))
    choice = page.get_by_label("Second model")
    with page.expect_request(f"**{ROUTE}/compare"):
        choice.select_option("en-fr+uniform")
    choice.select_option("en-fr+sparsemax")
    page.get_by_role("heading", name="en-fr with sparse attention").wait_for()
    late[0].continue_()
    page.wait_for_timeout(500)
    assert page.locator(".side h3").all_text_contents() == ["en-fr", "en-fr with sparse attention"]
    page.unroute_all()


def test_the_answer_to_a_sentence_that_was_emptied_is_not_shown(visit):
    page = visit("/translate")
    page.locator(".words").wait_for()
    held = []
    page.route(f"**{ROUTE}/inspect", lambda route: held.append(route))
    page.get_by_label("Sentence").fill(TEXT)
    with page.expect_request(f"**{ROUTE}/inspect"):
        page.get_by_label("Sentence").press("Enter")
    page.get_by_label("Sentence").fill("")
    page.get_by_label("Sentence").press("Enter")
    page.get_by_text("Type a sentence or take an example").wait_for()
    assert page.get_by_role("status").filter(has_text="en-fr").count() == 0, "nothing is asked any more"
    held[0].abort()
    page.unroute_all()
    settle(page)
    assert page.locator(".words, .error").count() == 0


def test_refusals_are_explained(visit):
    page = visit("/translate?model=small-transformer", allow="422")
    page.get_by_label("Sentence").fill("dog " * 140)
    page.get_by_role("button", name="Translate").click()
    assert "at most 128 tokens" in page.get_by_role("alert").text_content()
