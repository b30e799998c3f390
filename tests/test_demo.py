"""What the demonstration shows is true."""

import pytest

from regard.demo import attention as demo


def test_the_look_ups_find_the_rows_that_sql_would():
    found = [attended.context[0].tolist() for _, _, attended in demo.look_ups()]
    assert found[0] == [0, 1, 0]
    assert found[1] == [1, 0, 1]
    assert found[2] == [0.5, 0, 0.5]
    assert found[3] == pytest.approx([0.731, 0.0, 0.269], abs=1e-3)


def test_every_score_is_shown_and_the_learned_ones_have_learned():
    traces = dict(demo.traces_of_every_score())
    assert len(traces) == 11
    leans_on = [demo.SENTENCE.index(word) for _, _, word in demo.WORDS]
    for name in ("general", "additive", "concat", "mlp", "location", "context"):
        on_target = [row[index] for row, index in zip(traces[name].weights, leans_on, strict=True)]
        assert sum(on_target) / len(on_target) > 0.85, name
    assert traces["equality"].weights[0][4] == 0.5, "'The' and 'the' are one word"
