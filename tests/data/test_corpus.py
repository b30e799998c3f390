"""Corpora on disk: every pair is read back or counted as left out, and a damaged corpus does not open."""

import json
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import corpus as corpus_module
from regard.data.corpus import Corpus, Report
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError

WORDS = ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix"]
PAIRS = [(" ".join(WORDS[: i % 7 + 1]), " ".join(reversed(WORDS[: i % 5 + 1]))) for i in range(101)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(WORDS, kind="word", minimum_count=1)


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "new" / "corpus"


def build(pairs, tokenizer, folder, **options) -> Corpus:
    return Corpus.build(pairs, tokenizer, tokenizer, folder, **{"progress": False} | options)


def as_lists(corpus: Corpus) -> list[tuple[list[int], list[int]]]:
    return [(source.tolist(), target.tolist()) for source, target in corpus]


def test_a_corpus_gives_back_the_pairs_it_was_built_from(tokenizer, folder):
    expected = [(tokenizer.encode(source), tokenizer.encode(target)) for source, target in PAIRS]
    built = build(iter(PAIRS), tokenizer, folder)
    for corpus in (built, Corpus.open(folder), pickle.loads(pickle.dumps(built))):  # noqa: S301
        assert as_lists(corpus) == expected
        assert corpus.lengths.tolist() == [[len(source), len(target)] for source, target in expected]
        assert len(corpus) == 101
        assert corpus.report == Report(kept=101, empty=0, over_long=0, longest=7)
    assert sorted(file.name for file in folder.iterdir()) == [
        "meta.json", "source.ids", "source.offsets", "target.ids", "target.offsets",
    ]  # fmt: skip
    assert repr(built) == f"Corpus({built.report}; in {folder})"


def test_items_are_views_of_the_file_and_pickling_copies_only_the_path(tokenizer, folder):
    corpus = build(PAIRS * 50, tokenizer, folder)
    source, target = corpus[3]
    assert isinstance(source.base, np.memmap)
    assert source.dtype == target.dtype == np.dtype("<u2")
    assert not source.flags.writeable
    assert len(pickle.dumps(corpus)) < 1000


def test_pairs_are_indexed_as_in_a_list(tokenizer, folder):
    corpus = build(PAIRS[:3], tokenizer, folder)
    assert corpus[-1][0].tolist() == corpus[np.int64(2)][0].tolist() == tokenizer.encode(PAIRS[2][0])
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=f"has 3 pairs; there is no pair {wrong}"):
            corpus[wrong]


def test_the_chunk_size_makes_no_difference(tokenizer, tmp_path, monkeypatch):
    pairs = [*PAIRS, ("", "un"), ("un " * 9, "un")]
    whole = build(pairs, tokenizer, tmp_path / "whole", max_length=8)
    monkeypatch.setattr(corpus_module, "CHUNK", 2)
    parts = build(pairs, tokenizer, tmp_path / "parts", max_length=8)
    assert as_lists(whole) == as_lists(parts)
    assert whole.report == parts.report
    for name in ("source.ids", "target.offsets", "meta.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_empty_and_over_long_pairs_are_left_out_and_counted(tokenizer, folder):
    pairs = [("un", "deux"), ("", "un"), ("un", " \t"), ("un " * 6, "un"), ("un", "un " * 13), ("", "un " * 9)]
    corpus = build([*pairs, ("un " * 5, "un " * 5)], tokenizer, folder, max_length=5)
    assert corpus.report == Report(kept=2, empty=3, over_long=2, longest=13)
    assert corpus.lengths.tolist() == [[1, 1], [5, 5]]
    assert str(corpus.report) == "2 kept, 3 empty, 2 over-long; the longest side has 13 tokens"


@settings(deadline=None)  # each example is flushed to disk
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_every_pair_is_kept_or_counted(tokenizer, tmp_path_factory, sizes):
    pairs = [(" ".join(["un"] * source), " ".join(["dix"] * target)) for source, target in [*sizes, (1, 1)]]
    report = build(pairs, tokenizer, tmp_path_factory.mktemp("any"), max_length=7).report
    assert report.kept + report.empty + report.over_long == len(pairs)


def test_large_vocabularies_get_wider_ids(tokenizer, folder):
    many = Tokenizer.train((f"w{i}" for i in range(66_000)), kind="word", minimum_count=1, size=70_000)
    corpus = Corpus.build([("w65999", "un")], many, tokenizer, folder, progress=False)
    assert [side.dtype.str for side in corpus[0]] == ["<u4", "<u2"]
    assert many.decode(corpus[0][0]) == "w65999"


def test_a_failed_build_leaves_the_old_corpus_and_no_temporary_files(tokenizer, folder):
    def broken():
        yield "un", "deux"
        raise DataError("line 2")

    with pytest.raises(DataError, match="line 2"):
        build(broken(), tokenizer, folder)
    with pytest.raises(DataError, match=r"no complete corpus in .*corpus: it has no meta.json. Build it again"):
        Corpus.open(folder)
    assert not list(folder.iterdir())
    build(PAIRS, tokenizer, folder)
    with pytest.raises(DataError, match="line 2"):
        build(broken(), tokenizer, folder)
    assert len(Corpus.open(folder)) == 101


def test_a_corpus_is_reused_if_nothing_has_changed_and_built_again_otherwise(tokenizer, folder):
    def unread():
        yield "the pairs", "were read"

    build(PAIRS, tokenizer, folder, fingerprint="these")
    assert as_lists(build(unread(), tokenizer, folder, fingerprint="these")) == as_lists(Corpus.open(folder))
    other = Tokenizer.train(["the pairs were read"], kind="word", minimum_count=1)
    for change in [{"fingerprint": "those"}, {"fingerprint": None}, {"max_length": 199}]:
        build(PAIRS, tokenizer, folder, fingerprint="these")
        assert len(build([("un", "dix")], tokenizer, folder, **{"fingerprint": "these"} | change)) == 1
    build(PAIRS, tokenizer, folder, fingerprint="these")
    assert len(build(unread(), other, folder, fingerprint="these")) == 1
    build(PAIRS, tokenizer, folder, fingerprint="these")
    (folder / "source.ids").write_bytes(b"damaged")
    assert len(build(PAIRS[:3], tokenizer, folder, fingerprint="these")) == 3


def test_a_rebuilt_corpus_replaces_the_old_one_which_stays_readable(tokenizer, folder):
    old = build(PAIRS, tokenizer, folder)
    new = build(PAIRS[:7], tokenizer, folder)
    assert (len(old), len(new)) == (101, 7)
    assert as_lists(old)[100][0] == tokenizer.encode(PAIRS[100][0])


def test_another_tokenizer_is_noticed(tokenizer, folder):
    build(PAIRS, tokenizer, folder)
    other = Tokenizer.train(["autre"] * 2, kind="word")
    assert len(Corpus.open(folder, tokenizer, tokenizer)) == 101
    with pytest.raises(DataError, match=f"another target tokenizer .*{tokenizer.vocabulary_hash[:8]}.*Build it again"):
        Corpus.open(folder, tokenizer, other)


def test_a_damaged_corpus_does_not_open(tokenizer, folder):
    build(PAIRS, tokenizer, folder)
    meta = json.loads((folder / "meta.json").read_text())
    ids = (folder / "target.ids").read_bytes()
    (folder / "target.ids").write_bytes(ids[:-2])
    with pytest.raises(DataError, match=rf"target.ids is damaged: it has {len(ids) - 2} bytes, .* states {len(ids)}"):
        Corpus.open(folder)
    (folder / "target.ids").unlink()
    with pytest.raises(DataError, match=r"target.ids is damaged: it has 0 bytes"):
        Corpus.open(folder)
    (folder / "meta.json").write_text(json.dumps(meta | {"regard_corpus": 99}))
    with pytest.raises(DataError, match="corpus format 99; this version reads format 2"):
        Corpus.open(folder)
    (folder / "meta.json").write_text("[]")
    with pytest.raises(DataError, match=r"meta.json is damaged: it cannot be read \(Expected `object`, got `array`\)"):
        Corpus.open(folder)


@pytest.mark.parametrize("name", ["source.ids", "source.offsets", "target.ids", "target.offsets"])
def test_damage_of_the_same_size_is_noticed_and_the_corpus_built_again(tokenizer, folder, name):
    whole = as_lists(build(PAIRS, tokenizer, folder, fingerprint="these"))
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"is damaged"):
        Corpus.open(folder)
    assert as_lists(build(PAIRS, tokenizer, folder, fingerprint="these")) == whole
    assert as_lists(Corpus.open(folder)) == whole


BUILDING = """
import sys
from regard.data.corpus import Corpus
from regard.data.tokenizer import Tokenizer

def slowly():
    for number in range(50):
        print("read", flush=True)
        if number == 0:
            sys.stdin.readline()
        yield "one two", "un deux"

tokenizer = Tokenizer.load(sys.argv[2])
print(len(Corpus.build(slowly(), tokenizer, tokenizer, sys.argv[1], progress=False, fingerprint="these")))
"""


def test_two_processes_that_build_the_same_corpus_do_so_one_after_the_other(tokenizer, folder, tmp_path):
    command = [sys.executable, "-c", BUILDING, str(folder), str(tokenizer.save(tmp_path / "tokenizer.json"))]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    first = subprocess.Popen(command, **pipes, text=True)
    assert first.stdout.readline() == "read\n"
    second = subprocess.Popen(command, **pipes, text=True)
    assert "waiting for it" in second.stderr.readline()
    said = [running.communicate("go on\n", timeout=600)[0] for running in (first, second)]
    assert [out.count("read") for out in said] == [49, 0], said
    assert [out.split()[-1] for out in said] == ["50", "50"]
    assert len(Corpus.open(folder)) == 50


@pytest.mark.parametrize("linked", [False, True], ids=["plain", "linked"])
@pytest.mark.parametrize("saved", ["always", "when interrupted", "never"])
def test_an_interrupted_build_goes_on_where_it_stopped(tokenizer, folder, tmp_path, monkeypatch, linked, saved):
    monkeypatch.setattr(corpus_module, "CHUNK", 7)
    monkeypatch.setattr(corpus_module, "SAVE_SECONDS", -1 if saved == "always" else 1e9)
    pairs = [(*pair, np.zeros((i % 3, 2), np.int64)) if linked else pair for i, pair in enumerate([*PAIRS, ("", "un")])]
    whole = build(pairs, tokenizer, tmp_path / "whole", linked=linked)
    encoded = []
    encode_batch = Tokenizer.encode_batch

    def encode(self, texts, stop_after=None):
        encoded.append(len(texts))
        if sum(encoded) == stop_after:
            raise KeyboardInterrupt if saved != "never" else SystemExit
        return encode_batch(self, texts)

    monkeypatch.setattr(Tokenizer, "encode_batch", lambda self, texts: encode(self, texts, stop_after=98))
    if saved == "never":
        monkeypatch.setattr(corpus_module.CorpusDraft, "_save", lambda self, parts: None)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        build(pairs, tokenizer, folder, fingerprint="these", linked=linked)
    with pytest.raises(DataError, match="no complete corpus"):
        Corpus.open(folder)
    with (folder / ".draft" / "target.ids").open("ab") as stream:
        stream.write(b"half-written")
    encoded.clear()
    monkeypatch.setattr(Tokenizer, "encode_batch", encode)
    resumed = build(pairs, tokenizer, folder, fingerprint="these", linked=linked)
    assert sum(encoded) == 2 * (102 if saved == "never" else 102 - 42)
    assert as_lists(resumed) == as_lists(whole)
    assert resumed.report == whole.report == Report(101, 1, 0, 7)
    assert [resumed.links(i).tolist() for i in range(101)] == [whole.links(i).tolist() for i in range(101)]
    assert as_lists(Corpus.open(folder)) == as_lists(whole), "and its checksums are right"
    assert not (folder / ".draft").exists()


def test_the_draft_of_other_pairs_is_not_continued(tokenizer, folder, monkeypatch):
    monkeypatch.setattr(corpus_module, "CHUNK", 7)

    def interrupted():
        yield from PAIRS[:50]
        raise KeyboardInterrupt

    for fingerprint in ("those", None):
        with pytest.raises(KeyboardInterrupt):
            build(interrupted(), tokenizer, folder, fingerprint=fingerprint)
        assert as_lists(build(PAIRS[::-1], tokenizer, folder, fingerprint="these"))[0] == tuple(
            tokenizer.encode(text) for text in PAIRS[-1]
        )
        (folder / "meta.json").unlink()


def test_a_corpus_without_pairs_is_refused(tokenizer, folder):
    for pairs, message in [
        ([], "0 kept, 0 empty, 0 over-long"),
        ([("", "")], "1 empty"),
        ([("un un un", "un")], "1 over-"),
    ]:
        with pytest.raises(DataError, match=rf"No pair is left for .*corpus: .*{message}.*max_length is 2"):
            build(pairs, tokenizer, folder, max_length=2)
    with pytest.raises(OptionError, match="max_length must be 1 or more; got 0"):
        build(PAIRS, tokenizer, folder, max_length=0)


def test_memory_does_not_grow_with_the_corpus(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "CHUNK", 64)
    peaks = []
    for count in (256, 256, 4096):
        tracemalloc.start()
        build((("un deux trois", "quatre cinq") for _ in range(count)), tokenizer, tmp_path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


def test_progress_is_shown_on_stderr_alone(tokenizer, folder, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    build(PAIRS, tokenizer, folder, progress=True)
    out, err = capfd.readouterr()
    assert (out, "101 pairs" in err) == ("", True)
    build(PAIRS, tokenizer, folder)
    assert capfd.readouterr() == ("", "")


def test_offsets_that_were_damaged_without_changing_their_size_are_noticed(tokenizer, folder):
    build(PAIRS, tokenizer, folder)
    offsets = np.fromfile(folder / "source.offsets", "<i8")
    for number, value in [(5, 10**9), (5, 0), (0, 1), (-1, offsets[-1] + 7)]:
        damaged = offsets.copy()
        damaged[number] = value
        damaged.tofile(folder / "source.offsets")
        with pytest.raises(DataError, match=r"source\.offsets is damaged"):
            Corpus.open(folder)


def test_a_description_without_its_sides_is_refused(tokenizer, folder):
    build(PAIRS, tokenizer, folder)
    meta = json.loads((folder / "meta.json").read_text())
    for broken in (meta | {"sides": {}}, meta | {"report": {"kept": 3}}, meta | {"sides": {"source": 1, "target": 2}}):
        (folder / "meta.json").write_text(json.dumps(broken))
        with pytest.raises(DataError, match=r"meta\.json does not describe a corpus"):
            Corpus.open(folder)
