"""The routes of the Translate page: the numbers are those of the plain functions."""

import pytest
from helpers.models import TRANSFORMER, small_translator
from starlette.testclient import TestClient

import regard
from regard.serving.app import create_app
from regard.systems.translate.changes import Change
from regard.systems.translate.comparison import babel_example, compare_models, compare_with_gold
from regard.systems.translate.forced import search_tree
from regard.systems.translate.inspection import decode_again, force_word, inspect, move_attention

TEXT = "He is happy."
ROUTE = "/v1/translate/inspect"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small"
    small_translator(**TRANSFORMER).save(folder)
    with TestClient(create_app(folders=[str(folder)]), base_url="http://localhost") as made:
        yield made


@pytest.fixture(scope="module")
def model():
    return regard.load("en-fr", device="cpu")


def ask(client, path="", **body):
    answer = client.post(ROUTE + path, json={"input": TEXT, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_translation_comes_with_its_likeliest_words(client, model):
    answer, found = ask(client, input=f"{TEXT} She sleeps."), inspect(model, TEXT)
    assert answer["sentences"] == [TEXT, "She sleeps."]
    before = answer["before"]
    assert (before["text"], before["log_prob"]) == (found.text, pytest.approx(found.log_prob, abs=1e-4))
    for ours, theirs in zip(before["words"], found.words, strict=True):
        assert ours["tokens"] == list(theirs.tokens)
        assert [each["text"] for each in ours["likeliest"]] == [each.text for each in theirs.likeliest]
        expected = [each.probability for each in theirs.likeliest]
        assert [each["probability"] for each in ours["likeliest"]] == pytest.approx(expected, abs=1e-4)
    assert before["trace"]["kind"] == "translation"
    assert [word["text"] for word in before["source_words"]] == TEXT.split()
    assert answer["difference"] is None
    assert ask(client, input=f"{TEXT} She sleeps.", sentence=1)["before"]["text"].startswith("Elle")


def test_changes_are_those_of_the_functions(client, model):
    found = inspect(model, TEXT)
    forced, moved = force_word(model, found, 2, "triste"), move_attention(model, found, 1, {0: 1.0})
    for change in (forced, moved, Change(align="hard")):
        expected = decode_again(model, TEXT, change)
        attention = [{"step": step, "weights": list(row)} for step, row in change.attention.items()]
        body = {"prefix": list(change.prefix), "attention": attention, "align": change.align}
        if change is forced:  # the same, as a text
            body = {"prefix": list(found.tokens[: found.words[2].first]), "word": "triste"}
        difference = ask(client, change=body)["difference"]
        assert difference["after"]["text"] == expected.after.text
        assert difference["after_unchanged"] == pytest.approx(expected.after_unchanged, abs=1e-4)
        assert difference["before_under_change"] == pytest.approx(expected.before_under_change, abs=1e-4)
        assert [edit["kind"] for edit in difference["edits"]] == [edit.kind for edit in expected.edits]


def test_heads_of_a_transformer_are_removed(client):
    plain = ask(client, input="a dog", model="small", search={"max_length": 4})
    assert plain["architecture"] == "transformer"
    assert len(plain["heads"]) == 12
    assert plain["alignments"] == []
    assert len(plain["before"]["trace"]["maps"]) == 13
    changed = ask(client, input="a dog", model="small", search={"max_length": 4}, change={"heads": ["cross 1.1"]})
    difference = changed["difference"]
    assert difference["before_under_change"] != pytest.approx(changed["before"]["log_prob"], abs=1e-6)


def test_the_beam_is_a_tree(client, model):
    answer, found = ask(client, "/beam", search={"beam": 3}), search_tree(model, TEXT, beam=3)
    assert [node["parent"] for node in answer["nodes"]] == [node.parent for node in found.nodes]
    assert [node["fate"] for node in answer["nodes"]] == [node.fate for node in found.nodes]
    best = found.outputs()[0]
    rows = [answer["weights"][answer["nodes"][place]["attention"]] for place in found.tree.path(best)]
    assert rows == [pytest.approx(row, abs=1e-4) for row in found.trace(best).maps[0].weights.tolist()]
    assert answer["source"]["labels"] == list(found.trace(best).source)


def test_two_models_and_the_right_links(client, model):
    answer = ask(client, "/compare", second={"align": "hard"})
    expected = compare_models(model, model, TEXT, second_change=Change(align="hard"))
    assert (answer["first"]["text"], answer["second"]["text"]) == (expected.first.text, expected.second.text)
    assert answer["log_prob_by_second"] == pytest.approx(expected.log_prob_by_second, abs=1e-4)
    assert [each["name"] for each in answer["trace"]["maps"]] == ["difference", "first", "second"]
    answer = client.post(f"{ROUTE}/gold", json={"direction": "en-fr", "number": 3}).json()
    gold = compare_with_gold(model, babel_example("en-fr", 3))
    assert answer["error_rate"] == pytest.approx(gold.scores.error_rate)
    assert {tuple(link) for link in answer["links"]} == gold.links
    assert {tuple(link) for link in answer["sure"]} == gold.gold.sure


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("", {"input": "  "}, 422, "nothing to translate"),
        ("", {"sentence": 3}, 422, "1 sentence, counted from 0"),
        ("", {"model": "digits"}, 404, "no model 'digits' for this"),
        ("", {"change": {"heads": ["cross 1.1"]}}, 422, "Only a Transformer has heads"),
        ("", {"change": {"attention": [{"step": 1, "weights": [1.0]}]}}, 422, "The attention of step 1 needs"),
        ("", {"change": {"prefix": [999999]}}, 422, "target vocabulary"),
        ("", {"input": "dog " * 200, "model": "small"}, 422, "at most 128 tokens"),
        ("/beam", {"search": {"beam": 9}}, 422, "search.beam"),
        ("/gold", {"direction": "en-en", "input": None}, 422, "two of the languages"),
    ],
)
def test_what_cannot_be_inspected_is_explained(client, path, body, status, says):
    given = {key: value for key, value in {"input": TEXT, **body}.items() if value is not None}
    answer = client.post(ROUTE + path, json=given)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["error"]["message"]
