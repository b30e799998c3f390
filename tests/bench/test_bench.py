"""The benchmarks that users run: contests are fair, and every rival does the same work."""

import io
import json

import pytest
import torch
from rich.console import Console

from regard.bench import attention, contest
from regard.bench.contest import Contest, Timing
from regard.cli.bench import bench
from regard.errors import OptionError


def printed(timings: list[Timing], width: int, **options: str) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(contest.timing_table(timings, "a title", **options))
    return console.file.getvalue()


def test_rivals_run_in_turns_and_are_compared_with_the_first(monkeypatch):
    order, clock = [], [0.0]
    monkeypatch.setattr(contest.time, "perf_counter", lambda: clock[0])

    def rival(name, seconds):
        def run():
            order.append(name)
            clock[0] += seconds

        return run

    rivals = {"slow": rival("slow", 20.0), "quick": rival("quick", 2.0)}
    slow, quick = contest.run_contests([Contest("race", rivals, items=10)], repeats=3, progress=False)
    assert all(set(order[first : first + 2]) == {"slow", "quick"} for first in range(len(order) - 6, len(order), 2))
    assert (slow.fastest, slow.median, slow.slowest, slow.ratio) == (20, 20, 20, 1)
    assert (quick.fastest, quick.median, quick.slowest) == (2, 2, 2)
    assert quick.ratio == pytest.approx(10)
    assert quick.rate == pytest.approx(5)


def test_timings_are_printed_and_written(tmp_path):
    timings = contest.run_contests([Contest("nothing", {"a": int, "b": int})], repeats=2, progress=False)
    assert "nothing" in printed(timings, 150)
    contest.save_timings(timings, tmp_path / "out.json")
    written = json.loads((tmp_path / "out.json").read_text())
    assert [result["rival"] for result in written["results"]] == ["a", "b"]
    names = {"contest", "rival", "median", "fastest", "slowest", "ratio", "rate", "mebibytes"}
    assert set(written["results"][0]) == names
    assert written["machine"]["torch"] == torch.__version__


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.44, "1,440 ms"),
        (0.0123, "12.3 ms"),
        (0.00999, "9.99 ms"),
        (0.0009, "900 µs"),
        (4.2e-6, "4.20 µs"),
        (9.9, "9,900 ms"),
        (12.0, "12.0 s"),
        (5000.0, "5,000 s"),
    ],
)
def test_times_have_human_units(seconds, text):
    assert contest.format_seconds(seconds) == text


def test_a_range_has_the_unit_of_its_median():
    assert contest.format_seconds(0.0009, like=0.0012) == "0.90 ms"


def test_the_longest_names_and_numbers_fit_into_80_columns():
    name = "Luong, LSTM, input feeding both passes, b=80 m=n=30 hidden=1000 memory=2000"
    timings = [
        Timing(name, "torch's GRU, no attention", 0.9871, 0.9123, 0.9991, 1.0, 12_345.6, 12_345.0),
        Timing(name, "luong without input feeding", 0.0123, 0.0119, 0.0131, 12.34, 98_765.0, 4_321.0),
    ]
    lines = printed(timings, 80, unit="tokens").splitlines()
    assert name in lines
    (header,) = (line for line in lines if "median" in line)
    assert header.split() == ["median", "min", "-", "max", "tokens/s", "MiB", "speed"]
    assert "  torch's GRU, no attention     987 ms    912 - 999 ms    12,346  12,345   1.00x" in lines
    assert "  luong without input feeding  12.3 ms  11.9 - 13.1 ms    98,765   4,321  12.34x" in lines


def test_empty_columns_are_left_out():
    text = printed([Timing("race", "a", 1.44, 1.4, 1.5, 1.0, None, None)], 80)
    (header,) = (line for line in text.splitlines() if "median" in line)
    assert header.split() == ["median", "min", "-", "max", "speed"]
    assert "1,440 ms  1,400 - 1,500 ms  1.00x" in text


def test_a_narrow_terminal_wraps_names_and_numbers_but_never_cuts_them():
    text = printed([Timing("race", "a rival with a long name", 1.44, 1.4, 1.5, 1.0, None, None)], 40)
    assert "…" not in text
    assert all(part in "".join(text.split()) for part in ("1,440", "1,400", "1,500", "1.00x", "rival", "longname"))


@pytest.mark.parametrize("repeats", [0, -3])
def test_repeats_that_time_nothing_are_refused(repeats):
    with pytest.raises(OptionError, match=f"repeats must be a whole number of 1 or more; got {repeats}"):
        bench(repeats=repeats)
    with pytest.raises(OptionError, match="repeats"):
        contest.run_contests([], repeats=repeats)


def test_options_that_cannot_be_met_are_refused(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="is a folder"):
        bench(json=tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(OptionError, match="--tf32 needs a CUDA GPU"):
        bench(tf32=True)


def test_attention_contests_compare_equal_results(monkeypatch):
    monkeypatch.setattr(attention, "CPU_SIZES", [(2, 5, 7, 8)])
    monkeypatch.setattr(attention, "GPU_SIZES", [(2, 5, 7, 8)])
    monkeypatch.setattr(attention, "HARD_SIZES", [(2, 5, 7, 8)])
    for each in attention.contests():
        if each.name.startswith(("additive", "dot", "scaled", "general", "cosine")):
            first, *others = (run() for run in each.rivals.values())
            for other in others:
                torch.testing.assert_close(other, first, rtol=1e-4, atol=1e-4)
