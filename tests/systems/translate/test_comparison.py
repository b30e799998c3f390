"""Two translators beside each other, and a translator beside the right word links."""

import numpy as np
import pytest
from helpers.models import TEXTS, TRANSFORMER, small_translator

from regard.errors import OptionError
from regard.metrics.alignment import GoldAlignment
from regard.search.options import Search
from regard.systems.translate.alignment import alignment_error
from regard.systems.translate.changes import Change
from regard.systems.translate.inspection import babel_example, compare_models, compare_with_gold, inspect

TEXT = TEXTS[0]
SHORT = Search(max_length=4)


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
