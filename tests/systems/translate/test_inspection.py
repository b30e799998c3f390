"""Looking inside one translation: exact numbers, against slow references."""

import numpy as np
import pytest
import torch
from helpers.models import TEXTS, TRANSFORMER, small_translator

from regard.data.tokenizer import END, START, Tokenizer
from regard.decoders.protocol import select
from regard.errors import OptionError
from regard.metrics.alignment import GoldAlignment
from regard.search.options import Search
from regard.systems.translate.alignment import alignment_error
from regard.systems.translate.changes import Change
from regard.systems.translate.config import RAW
from regard.systems.translate.forced import (
    SentenceDecoder,
    encode_after,
    next_log_probs,
    pieces_of,
    split_tokens,
)
from regard.systems.translate.inspection import (
    babel_example,
    compare_models,
    compare_with_gold,
    force_word,
    inspect,
    move_attention,
    search_tree,
    sentences,
    translate_with_change,
)

KINDS = {
    "plain": {"architecture": "plain"},
    "rnnsearch": {},
    "conditional": {"conditional": True, "coverage": True},
    "luong": {"architecture": "luong", "cell": "lstm", "score": "general", "align": "local_p"},
    "hard": {"architecture": "luong", "align": "hard"},
    "transformer": TRANSFORMER,
}
ATTENTIVE = [kind for kind in KINDS if kind != "plain"]
TEXT = TEXTS[0]
LONG = {"beam": 3, "max_length": 6}
SEARCH, SHORT = Search(**LONG), Search(max_length=4)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 3, size=60)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture
def model(tokenizer, request):
    """A model with sharp distributions, so that some words are far likelier than others."""
    made = small_translator(tokenizer, **KINDS[request.param])
    output = made.decoder.output
    output.weight.data *= 3
    output.bias.data = 2.5 * torch.randn(len(output.bias), generator=torch.Generator().manual_seed(1))
    output.bias.data[END] = -1.0
    output.bias.data[pieces_of(tokenizer).inner] -= 3.0  # so that words are short
    return made


every_model = pytest.mark.parametrize("model", KINDS, indirect=True)
attentive_model = pytest.mark.parametrize("model", ATTENTIVE, indirect=True)


@every_model
def test_an_inspection_is_the_translation_of_the_model(model):
    found, expected = inspect(model, TEXT, search=SEARCH), model.translate(TEXT, **RAW, **LONG)
    assert found.text == expected.text
    assert found.score == pytest.approx(expected.score)
    assert found.log_prob == pytest.approx(SentenceDecoder(model, TEXT).log_prob(_tokens(found)), abs=1e-5)
    if expected.trace is None:
        assert found.trace is None
    else:
        assert found.trace.maps[0] == expected.trace.maps[0]
    assert [token for word in found.words for token in word.tokens] == _tokens(found)
    texts = [word.text for word in found.words if word.text != "</s>"]
    assert "".join(texts) == found.text.replace(" ", "")


def _tokens(found):
    return [*found.tokens, *([END] if found.finished else [])]


def _all_words(model, step, least):
    """Every word that is likelier than `least`, piece by piece."""
    tokenizer, found = model.target_tokenizer, {}
    inner = pieces_of(tokenizer).inner

    def follow(pieces, log_prob, step):
        after = next_log_probs(step)[0]
        if pieces and pieces_of(tokenizer).open[pieces[-1]]:
            end = log_prob + after[~inner].logsumexp(0)
            if end.exp() > least and tokenizer.decode(pieces):
                found[tuple(pieces)] = end.exp().item()
        elif pieces:
            found[tuple(pieces)] = log_prob.exp().item()
            return
        for token in torch.nonzero((log_prob + after).exp() > least).flatten().tolist():
            if not pieces or inner[token]:
                longer = model.decoder.step(torch.tensor([token]), step.state)
                follow([*pieces, token], log_prob + after[token], longer)

    follow([], torch.tensor(0.0), step)
    return found


@every_model
def test_the_likeliest_words_are_those_of_a_full_enumeration(model):
    found = inspect(model, TEXT, search=SEARCH)
    steps = SentenceDecoder(model, TEXT).steps(found.tokens)
    for word in found.words[:3]:
        expected = _all_words(model, steps[word.first], word.likeliest[-1].probability * 0.999)
        spelled = {}  # each word in its likeliest spelling
        for tokens, probability in sorted(expected.items(), key=lambda item: -item[1]):
            text = model.target_tokenizer.decode(tokens) if tokens != (END,) else None
            spelled.setdefault((text, model.target_tokenizer.begins_word(tokens[0])), (tokens, probability))
        ranked = list(spelled.values())[:5]
        assert len(ranked) == 5
        assert [one.tokens for one in word.likeliest] == [tokens for tokens, _ in ranked]
        assert [one.probability for one in word.likeliest] == pytest.approx([each for _, each in ranked], rel=1e-4)
        same = [one.probability for one in word.likeliest if one.tokens == word.tokens]
        assert same in ([], [pytest.approx(word.probability, rel=1e-4)])


def test_pieces_are_joined_to_readable_words(tokenizer):
    french = Tokenizer.train(["l'homme a signé l'accord, aujourd'hui : « oui » !", "un accord"] * 3, size=80)
    ids = french.encode("l'accord, signé aujourd'hui !")
    words = [french.decode([ids[index] for index in span]) for span in split_tokens(french, ids)]
    assert words == ["l'", "accord", ",", "signé", "aujourd'", "hui", "!"]
    assert split_tokens(tokenizer, []) == []
    # A space that is a piece of its own belongs to the unknown piece after it.
    ids = french.encode("un 😀 accord")
    words = [french.decode([ids[index] for index in span]) for span in split_tokens(french, ids)]
    assert words == ["un", "⁇", "accord"]


@every_model
def test_the_tree_holds_the_search(model):
    """Every step has the best extensions of all kept hypotheses, computed here from new passes over their tokens."""
    size = 2
    search = Search(beam=size, max_length=5)
    found = search_tree(model, TEXT, search=search)
    outputs = SentenceDecoder(model, TEXT).search(search)
    assert [found.text(index) for index in found.outputs()] == [
        model.target_tokenizer.decode(one.tokens) for one in outputs
    ]
    assert [found.nodes[index].score for index in found.outputs()] == pytest.approx([one.score for one in outputs])
    decoder = SentenceDecoder(model, TEXT)
    kept = [0]
    for depth in range(1, max(node.depth for node in found.nodes)):
        extensions = []
        for index in kept:
            tokens = found.tree.tokens(index)
            after = decoder.steps(tokens)[-1].logits[0].log_softmax(-1)
            total = decoder.log_prob(tokens)
            extensions += [(total + after[token].item(), index, token) for token in range(START + 1, len(after))]
        best = sorted(extensions, reverse=True)[: 2 * size]
        here = [index for index, node in enumerate(found.nodes) if node.depth == depth]
        assert [(found.nodes[index].parent, found.nodes[index].token) for index in here] == [each[1:] for each in best]
        assert [found.nodes[index].total for index in here] == pytest.approx([each[0] for each in best], abs=1e-4)
        open_ones = [index for index in here if found.nodes[index].token != END]
        kept = [index for index in here if found.nodes[index].fate in ("kept", "cut")]
        assert kept == open_ones[:size]


@attentive_model
def test_a_branch_of_the_tree_has_its_own_attention(model):
    found = search_tree(model, TEXT, search=SEARCH)
    assert found.trace(found.outputs()[0]).maps[0] == inspect(model, TEXT, search=SEARCH).trace.maps[0]
    pruned = next(index for index, node in enumerate(found.nodes) if node.fate == "pruned" and node.depth == 4)
    steps = SentenceDecoder(model, TEXT).steps(found.tree.tokens(pruned)[:-1])
    expected = torch.cat([step.attended.weights[0] for step in steps])
    np.testing.assert_allclose(found.trace(pruned).maps[0].weights, expected.numpy(), atol=1e-5)


def test_the_search_of_a_prefix_is_recorded(tokenizer):
    model = small_translator(tokenizer)
    prefix = tuple(tokenizer.encode("two dogs"))
    found = search_tree(model, TEXT, Change(prefix=prefix), search=Search(beam=4, max_length=len(prefix) + 2))
    assert [node.token for node in found.nodes[1 : len(prefix) + 1]] == list(prefix)
    assert all(found.text(index).startswith("two dogs") for index in found.outputs())


@every_model
def test_a_forced_word_is_followed_by_what_the_model_finds_likely(model):
    found = inspect(model, TEXT, search=SEARCH)
    word = next(each for each in found.words[2].likeliest if each.begins and each.tokens != found.words[2].tokens)
    again = translate_with_change(model, TEXT, force_word(model, found, 2, word.tokens), search=SEARCH)
    assert again.after.tokens[: found.words[2].first] == found.tokens[: found.words[2].first]
    assert again.after.words[2].text.startswith(word.text)
    assert again.after.log_prob == pytest.approx(again.after_unchanged, abs=1e-4), "the model is the same"
    assert found.log_prob == pytest.approx(again.before_under_change, abs=1e-4)
    by_text = translate_with_change(model, TEXT, force_word(model, found, 0, "dogs"), search=SEARCH).after
    expected = model.translate(TEXT, prefix="dogs", **RAW, **LONG)
    assert (by_text.text, by_text.score) == (expected.text, pytest.approx(expected.score))


@attentive_model
def test_moved_attention_changes_what_follows_and_nothing_before(model):
    found = inspect(model, TEXT, search=Search(beam=1, max_length=6))
    change = move_attention(model, found, 2, {1: 3.0, 2: 1.0})
    step = found.words[2].first
    row = torch.tensor(change.attention[step])
    owners = model.source_tokenizer.word_index(found.source_tokens)
    of_words = [sum(w for w, owner in zip(row.tolist(), owners, strict=True) if owner == word) for word in range(5)]
    assert of_words == pytest.approx([0, 0.75, 0.25, 0, 0])
    again = translate_with_change(model, TEXT, change, search=Search(beam=1, max_length=6))
    np.testing.assert_allclose(again.after.trace.maps[0].weights[step], row, atol=1e-6)
    np.testing.assert_allclose(again.after.trace.maps[0].weights[:step], found.trace.maps[0].weights[:step], atol=1e-6)
    # The same by hand: greedy steps, one of which attends elsewhere.
    decoder, tokens, log_prob = SentenceDecoder(model, TEXT), [], 0.0
    state = model.decoder.start(decoder.encoded)
    for index in range(7):
        given = row.view(1, 1, -1) if index == step else None
        made = model.decoder.step(torch.tensor([tokens[-1] if tokens else START]), state, override=given)
        state, after = made.state, next_log_probs(made)[0]
        token = found.tokens[index] if index < step else int(after.argmax())
        if index == 6 and token != END:
            break
        tokens.append(token)
        log_prob += after[token].item()
        if token == END:
            break
    assert _tokens(again.after) == tokens
    assert again.after.log_prob == pytest.approx(log_prob, abs=1e-4)
    assert again.before_under_change == pytest.approx(SentenceDecoder(model, TEXT, change).log_prob(_tokens(found)))


@pytest.mark.parametrize("model", ["rnnsearch", "conditional", "luong", "hard"], indirect=True)
def test_attention_that_stays_where_it_was_changes_nothing(model):
    found = inspect(model, TEXT, search=SEARCH)
    own = dict(enumerate(found.trace.maps[0].weights.tolist()))
    again = translate_with_change(model, TEXT, Change(attention=own), search=SEARCH)
    assert again.after.tokens == found.tokens
    assert again.after.log_prob == pytest.approx(found.log_prob, abs=1e-4)
    assert [edit.kind for edit in again.edits] == ["same"]


def test_where_words_attend_when_they_are_read_the_next_step_is_moved(tokenizer):
    model = small_translator(tokenizer, **TRANSFORMER, alignment_step="input")
    model.decoder.output.bias.data[tokenizer.encode("dog")[0]] += 2
    found = inspect(model, TEXT, search=SEARCH)
    change = move_attention(model, found, 1, {0: 1.0})
    assert list(change.attention) == [found.words[1].first + 1]
    after = inspect(model, TEXT, change, search=SEARCH)
    np.testing.assert_allclose(after.trace.maps[0].weights[found.words[1].first], change.attention[len(change.prefix)])


def test_a_typed_word_joins_what_stands_before_it(tokenizer):
    french = Tokenizer.train(["l'homme a signé l'accord, un traité", "un accord"] * 3, size=80)
    model = small_translator(french)
    before = french.encode("l'accord")[:-1]
    joined = [*before, *encode_after(model, before, "homme")]
    assert french.decode(joined) == "l'homme"
    assert french.decode([*joined, *encode_after(model, joined, ",")]) == "l'homme,"
    assert french.decode([*joined, *encode_after(model, joined, "un traité")]) == "l'homme un traité"


def test_the_sentences_of_a_text(tokenizer):
    split = small_translator(tokenizer, split_sentences=True)
    assert sentences(split, "A dog. two dogs!\n") == ["A dog.", "two dogs!"]
    assert sentences(small_translator(tokenizer), "A dog. Two dogs!") == ["A dog. Two dogs!"]
    assert sentences(split, " \n") == []


def test_what_cannot_be_inspected_is_explained(tokenizer):
    model = small_translator(tokenizer)
    found = inspect(model, TEXT, search=SEARCH)
    for call, says in [
        (lambda: inspect(model, " "), "nothing to translate"),
        (lambda: inspect(model, "dog " * 200), "at most 128 tokens"),
        (lambda: inspect(model, TEXT, search=Search(sample=True)), "Inspection searches with a beam"),
        (lambda: inspect(model.train(), TEXT), "training mode"),
        (lambda: inspect(model.eval(), TEXT, Change(prefix=(99,))), "target vocabulary, 2 to"),
        (lambda: inspect(model, TEXT, Change(attention={1: (1.0,)})), "step 1 needs"),
        (lambda: inspect(model, TEXT, Change(attention={-1: [0.1] * len(found.source_tokens)})), "counted from 0"),
        (lambda: inspect(small_translator(architecture="plain"), TEXT, Change(attention={0: [1.0]})), "plain model"),
        (lambda: force_word(model, found, 99, "dog"), "counted from 0; got position 99"),
        (lambda: force_word(model, found, 0, " "), "word must be a non-empty text or tokens"),
        (lambda: move_attention(model, found, 99, {0: 1.0}), "counted from 0; got position 99"),
        (lambda: move_attention(model, found, 0, {0: -1.0}), "0 or more"),
        (lambda: move_attention(model, found, 0, {50: 1.0}), "got word 50"),
    ]:
        with pytest.raises(OptionError, match=says):
            call()


def test_states_of_a_steered_search_are_selected_with_their_rows(tokenizer):
    model = small_translator(tokenizer)
    decoder = SentenceDecoder(model, "two dogs run", Change(attention={1: [0.5] * 4}))
    state = decoder.decoder.start(decoder.encoded)
    rows = select(state, torch.tensor([0, 0, 0]))
    assert rows.inner.cells[0][0].shape[0] == 3
    assert decoder.decoder.step(torch.tensor([START] * 3), rows).state.step == 1


def test_two_models_are_compared_word_by_word():
    model, transformer = small_translator(), small_translator(**TRANSFORMER)
    model.decoder.output.bias.data[model.target_tokenizer.encode("dogs")[0]] += 5
    found = compare_models(model, transformer, TEXT, search=SHORT)
    assert found.first.text == inspect(model, TEXT, search=SHORT).text
    assert found.second.text == inspect(transformer, TEXT, search=SHORT).text
    difference, first, second = found.trace.maps
    np.testing.assert_allclose(difference.weights, first.weights - second.weights, atol=1e-6)
    assert found.trace.source == tuple(TEXT.split())
    assert found.trace.target == tuple(found.first.text.split())
    same = compare_models(model, model, TEXT, search=SHORT)
    assert not same.trace.maps[0].weights.any()
    assert [edit.kind for edit in same.edits] == ["same"]
    hard = compare_models(model, model, TEXT, second_change=Change(align="hard"), search=SHORT)
    assert hard.log_prob_by_second != same.log_prob_by_second
    assert hard.trace.maps[0].weights.any()
    plain = small_translator(architecture="plain")
    assert compare_models(model, plain, TEXT, search=SHORT).trace is None


def test_attention_is_compared_with_the_right_links():
    model = small_translator()
    gold = GoldAlignment(("a", "dog"), ("two", "dogs"), frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))
    found = compare_with_gold(model, gold)
    expected = alignment_error(model, [gold])
    assert (found.error_rate, found.precision, found.recall) == (
        expected.error_rate,
        expected.precision,
        expected.recall,
    )
    assert found.links == {(int(row.argmax()), target) for target, row in enumerate(found.trace.maps[0].weights)}


def test_examples_of_babel_have_links_and_repeat():
    example = babel_example("fa-en", 3)
    assert example == babel_example("fa-en", 3) != babel_example("fa-en", 4)
    assert example.sure <= example.possible
    assert example.sure
    for call, says in [
        (lambda: babel_example("en-xx"), "two of the languages"),
        (lambda: babel_example("en-fr", 200), "from 0 to 199"),
    ]:
        with pytest.raises(OptionError, match=says):
            call()
