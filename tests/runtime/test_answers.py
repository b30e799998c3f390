"""An exported model answers as the model does, without torch: the same tokens, scores, attention and options."""

import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.models import TEXTS, TRANSLATORS, photograph, small_captioner, small_translator

import regard
from regard.errors import ModelError, OptionError
from regard.runtime.steps import GraphState, GraphSteps
from regard.systems.export import export
from regard.systems.translate.exported import ExportedTranslator
from regard.systems.translate.model import Translator

SEARCHES = [
    {},
    {"beam": 1},
    {"beam": 3, "nbest": 3, "block_ngrams": 2, "min_length": 3},
    {"beam": 4, "coverage_penalty": 0.5, "length_penalty": 0.6},
    {"sample": True, "nbest": 3, "seed": 7, "top_k": 20, "temperature": 0.7},
    {"sample": True, "seed": 2, "top_p": 0.8},
    {"prefix": "two dogs"},
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Each kind of small translator with its exported form, made when it is first asked for."""
    made = {}

    def both(kind):
        if kind not in made:
            model = small_translator(**TRANSLATORS[kind])
            out = tmp_path_factory.mktemp("exported") / "model"
            made[kind] = model, regard.load(export(model, out, precision="float32")), out
        return made[kind]

    return both


def outputs(result):
    return [(each.text, each.finished) for each in (result, *result.alternatives)]


@pytest.mark.parametrize("kind", TRANSLATORS)
def test_an_exported_translator_answers_as_the_model_does(exported, kind):
    model, same, _ = exported(kind)
    assert isinstance(same, ExportedTranslator)
    for options in SEARCHES:
        options = {"max_length": 8, **options}
        if not model.has_attention:
            options.pop("coverage_penalty", None)
        for first, second in zip(model.translate(TEXTS, **options), same.translate(TEXTS, **options), strict=True):
            assert outputs(first) == outputs(second), options
            assert first.score == pytest.approx(second.score, abs=1e-4)
            assert (first.trace is None) == (second.trace is None) == (not model.has_attention)
            if first.trace is not None:
                assert first.trace.axes == second.trace.axes
                np.testing.assert_allclose(first.trace.weights, second.trace.weights, atol=1e-5)


@pytest.mark.parametrize(
    "config", [{}, {"align": "hard"}, {"architecture": "adaptive"}, {"architecture": "show_and_tell"}]
)
def test_an_exported_captioner_answers_as_the_model_does(config, tmp_path):
    model = small_captioner(**config)
    same = regard.load(export(model, tmp_path / "out", precision="float32"))
    images = [photograph(seed=seed) for seed in (3, 4, 5)]
    for options in ({}, {"beam": 1}, {"beam": 3, "nbest": 2, "max_length": 5}):
        for first, second in zip(model.caption(images, **options), same.caption(images, **options), strict=True):
            assert outputs(first) == outputs(second)
            assert first.score == pytest.approx(second.score, abs=1e-4)
            assert (first.trace is None) == (second.trace is None) == (not model.has_attention)
            if first.trace is not None:
                assert first.trace.axes == second.trace.axes
                np.testing.assert_allclose(first.trace.weights, second.trace.weights, atol=1e-5)
                for one, other in zip(first.trace.series, second.trace.series, strict=True):
                    np.testing.assert_allclose(one.values, other.values, atol=1e-4)


def test_a_batch_answers_as_its_texts_one_by_one(exported):
    _, same, _ = exported("rnnsearch")
    together = same.translate(TEXTS, beam=3, nbest=2, max_length=8)
    assert [outputs(each) for each in together] == [
        outputs(same.translate(text, beam=3, nbest=2, max_length=8)) for text in TEXTS
    ]


def test_rows_that_leave_their_inputs_unequal_become_inputs_of_their_own(exported):
    memory, past = {"memory.keys": np.arange(3)[:, None]}, {"past.cell": np.arange(6)[:, None]}
    state = GraphState(memory, past, (0, 0, 1, 1, 2, 2))
    steps = GraphSteps(exported("rnnsearch")[1].graphs["decoder"])
    equal = steps.select(state, [5, 4, 1, 0])
    assert (equal.owners, equal.memory["memory.keys"].tolist()) == ((0, 0, 1, 1), [[2], [0]])
    unequal = steps.select(state, [0, 1, 3])
    assert (unequal.owners, unequal.memory["memory.keys"].tolist()) == ((0, 1, 2), [[0], [0], [1]])
    assert unequal.past["past.cell"].tolist() == [[0], [1], [3]]
    assert steps.select(state, [1, 0, 3, 2, 5, 4], same_inputs=True).memory is memory


def test_what_an_exported_model_cannot_do_is_explained(exported):
    _, same, out = exported("transformer")
    with pytest.raises(OptionError, match="reports one attention"):
        same.translate("a dog", traces="all")
    with pytest.raises(OptionError, match="runs on the CPU; got device 'cuda'"):
        regard.load(out, device="cuda")
    with pytest.raises(ModelError, match="is an exported model, which has graphs"):
        Translator.load(out)


def test_a_graph_that_was_changed_is_refused(exported, tmp_path):
    model, *_ = exported("rnnsearch")
    out = export(model, tmp_path / "out", precision="float32")
    graph = next((out / "onnx").glob("encoder*"))
    graph.write_bytes(graph.read_bytes()[:-1])
    with pytest.raises(ModelError, match="is damaged"):
        regard.load(out)


def test_the_command_runs_an_exported_model_without_torch(exported):
    model, _, out = exported("rnnsearch")
    code = (
        "import sys; sys.modules['torch'] = None\n"  # importing it is an error
        "from regard.cli import main\n"
        f"main(['translate', '--model', {str(out)!r}, '--max-length', '6', '--json', {TEXTS[0]!r}])"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert model.translate(TEXTS[0], max_length=6).text in run.stdout
