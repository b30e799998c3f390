"""The benchmarks that users run: contests are fair, and every rival does the same work."""

import dataclasses
import json
import time

import pytest
import torch
from rich.console import Console

from regard.bench import attention, contest, translators


def test_rivals_run_in_turns_and_are_compared_with_the_first():
    order = []

    def rival(name, seconds):
        def run():
            order.append(name)
            time.sleep(seconds)

        return run

    rivals = {"slow": rival("slow", 0.02), "quick": rival("quick", 0.002)}
    results = contest.hold([contest.Contest("sleep", rivals, unit=10)], repeats=3, progress=False)
    assert order[-6:] == ["slow", "quick"] * 3
    slow, quick = results
    assert slow.ratio == 1
    assert 3 < quick.ratio < 12
    assert quick.rate == pytest.approx(10 / quick.median)
    assert quick.fastest <= quick.median <= quick.slowest


def test_results_are_shown_and_written(tmp_path):
    results = contest.hold([contest.Contest("nothing", {"a": int, "b": int})], repeats=2, progress=False)
    console = Console(width=150, record=True, file=(tmp_path / "out").open("w"))
    console.print(contest.show(results, "a title"))
    assert "nothing" in console.export_text()
    contest.write(results, tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())
    assert [result["rival"] for result in written["results"]] == ["a", "b"]
    assert written["machine"]["torch"] == torch.__version__


def test_attention_contests_compare_equal_answers(monkeypatch):
    monkeypatch.setattr(attention, "ON_CPU", [(2, 5, 7, 8)])
    monkeypatch.setattr(attention, "ON_GPU", [(2, 5, 7, 8)])
    for held in attention.contests():
        if held.name.startswith(("additive", "dot", "scaled", "general", "cosine")):
            first, *others = (run() for run in held.rivals.values())
            for other in others:
                for one, two in zip(*(x if isinstance(x, tuple) else (x,) for x in (first, other)), strict=True):
                    torch.testing.assert_close(one.squeeze(1), two.squeeze(1), rtol=1e-4, atol=1e-4)


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
        assert held.unit > 0
