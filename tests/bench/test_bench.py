"""The benchmarks that users run: contests are fair, and every rival does the same work."""

import dataclasses
import io
import json

import pytest
import torch
from rich.console import Console

from regard.bench import attention, contest, decoders, translators


def test_rivals_run_in_turns_and_are_compared_with_the_first(monkeypatch):
    order, clock = [], [0.0]
    monkeypatch.setattr(contest.time, "perf_counter", lambda: clock[0])

    def rival(name, seconds):
        def run():
            order.append(name)
            clock[0] += seconds

        return run

    rivals = {"slow": rival("slow", 20.0), "quick": rival("quick", 2.0)}
    slow, quick = contest.hold([contest.Contest("race", rivals, things=10)], repeats=3, progress=False)
    assert all(set(order[first : first + 2]) == {"slow", "quick"} for first in range(len(order) - 6, len(order), 2))
    assert (slow.fastest, slow.median, slow.slowest, slow.ratio) == (20, 20, 20, 1)
    assert (quick.fastest, quick.median, quick.slowest) == (2, 2, 2)
    assert quick.ratio == pytest.approx(10)
    assert quick.rate == pytest.approx(5)


def test_results_are_shown_and_written(tmp_path):
    results = contest.hold([contest.Contest("nothing", {"a": int, "b": int})], repeats=2, progress=False)
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(contest.show(results, "a title"))
    assert "nothing" in console.export_text()
    contest.write(results, tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())
    assert [result["rival"] for result in written["results"]] == ["a", "b"]
    assert written["machine"]["torch"] == torch.__version__


def test_attention_contests_compare_equal_answers(monkeypatch):
    monkeypatch.setattr(attention, "ON_CPU", [(2, 5, 7, 8)])
    monkeypatch.setattr(attention, "ON_GPU", [(2, 5, 7, 8)])
    monkeypatch.setattr(attention, "READS", [(2, 5, 7, 8)])
    for held in attention.contests():
        if held.name.startswith(("additive", "dot", "scaled", "general", "cosine")):
            first, *others = (run() for run in held.rivals.values())
            for other in others:
                torch.testing.assert_close(other, first, rtol=1e-4, atol=1e-4)


def test_translators_decode_and_train(monkeypatch):
    small = {
        name: dataclasses.replace(config, embedding=8, hidden=8, encoder_hidden=4, heads=2, inner=8)
        for name, config in translators.KINDS.items()
    }
    monkeypatch.setattr(translators, "KINDS", small)
    monkeypatch.setattr(translators, "WORDS", 50)
    monkeypatch.setattr(translators, "LENGTH", 3)
    for held in [*translators.decoding(), *translators.training()]:
        for run in held.rivals.values():
            run()
        assert held.things > 0


def test_decoders_give_what_the_written_loop_gives(monkeypatch):
    monkeypatch.setattr(decoders, "ON_CPU", decoders.Size(3, 4, 6, 5, 8))
    monkeypatch.setattr(decoders, "ON_GPU", decoders.Size(3, 4, 6, 5, 8))
    for held in decoders.contests(compiled=False):
        first, *others = (run() for name, run in held.rivals.items() if "no attention" not in name)
        for other in others:
            for ours, theirs in zip(other, first, strict=True):
                assert (ours is None) == (theirs is None)
                if ours is not None:
                    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
