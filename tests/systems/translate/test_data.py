"""What a translator learns from: streamed, split by source sentence, and never all in memory."""

import json
import sys
import tracemalloc
import types
import zipfile
from itertools import islice

import pytest

from regard.config import parse_values
from regard.data import corpus as corpus_module
from regard.data.corpus import Corpus
from regard.data.splits import HashHoldOut
from regard.data.text import read_tsv
from regard.errors import DataError, OptionError
from regard.systems.plan import read_recipe
from regard.systems.run import train
from regard.systems.translate import data as data_module
from regard.systems.translate.config import TranslationData
from regard.systems.translate.data import PairStream, TranslationSplits, read_splits, train_tokenizers

PAIRS = [(f"sentence {i % 400}", f"satz {i}") for i in range(2000)]


def write(path, pairs) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


def test_training_pairs_are_those_whose_source_is_not_held_out(tmp_path):
    with_blanks = [*PAIRS, ("", "nothing"), ("sentence 3", " ")]
    config = TranslationData(pairs=write(tmp_path / "pairs.tsv", with_blanks), held_out=5, held_out_test=7)
    splits = read_splits(config)
    assert (len(splits.valid), len(splits.test), splits.pairs) == (5, 7, 2000)
    held = {source for source, _ in [*splits.valid, *splits.test]}
    assert len(held) == 12
    assert list(splits.train) == [pair for pair in with_blanks if pair[0] not in held]
    assert list(splits.train) == list(splits.train), "it can be read again"


def test_pairs_are_read_from_a_member_of_an_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "pairs.zip", "w") as archive:
        archive.writestr("pairs.txt", "".join(f"{source}\t{target}\n" for source, target in PAIRS))
    splits = read_splits(TranslationData(folder=str(tmp_path), pairs="pairs.zip/pairs.txt", held_out=5))
    assert splits.pairs == len(PAIRS)
    with pytest.raises(DataError, match=r"no other\.txt in .*it holds pairs\.txt"):
        read_splits(TranslationData(folder=str(tmp_path), pairs="pairs.zip/other.txt", held_out=5))


def test_too_few_sentences_to_hold_out_any_are_refused(tmp_path):
    with pytest.raises(OptionError, match="1 different source sentences are too few"):
        read_splits(TranslationData(pairs=write(tmp_path / "one.tsv", [("a", "b")] * 3)))
    with pytest.raises(DataError, match="no pair has words on both sides"):
        read_splits(TranslationData(pairs=write(tmp_path / "none.tsv", [("a", ""), ("", "b")])))


def test_files_of_their_own_for_validation_leave_the_training_pairs_whole(tmp_path):
    for side in ("a", "b"):
        (tmp_path / side).write_text("one\ntwo\n")
    files = {"valid_source": "a", "valid_target": "b", "test_source": "b", "test_target": "a"}
    config = TranslationData(folder=str(tmp_path), pairs="p.tsv", **files)
    write(tmp_path / "p.tsv", PAIRS[:2])
    splits = read_splits(config)
    assert list(splits.train) == PAIRS[:2]
    assert splits.valid == splits.test == [("one", "one"), ("two", "two")]


def test_the_fingerprint_changes_with_the_file_the_columns_and_what_is_held_out(tmp_path):
    path = write(tmp_path / "p.tsv", PAIRS)

    def print_of(**options) -> str | None:
        return read_splits(TranslationData(pairs=path, **options)).train.fingerprint

    first = print_of()
    assert print_of() == first
    assert len({first, print_of(held_out=4), print_of(columns=(1, 0))}) == 3
    write(tmp_path / "p.tsv", [*PAIRS, ("more", "mehr")])
    assert print_of() != first


def test_a_tokenizer_is_trained_on_an_even_sample_of_a_large_corpus(monkeypatch):
    monkeypatch.setattr(data_module, "TOKENIZER_PAIRS", 10)
    read = []

    def pairs():
        for i in range(35):
            read.append(i)
            yield f"word{i % 4}", "wort"

    splits = TranslationSplits(PairStream(pairs, None), [], [], pairs=35)
    source, _ = train_tokenizers(TranslationData(tokens="word", joint=False, vocabulary=50), splits)
    assert len(read) == 2 * 35, "one pass for each side"
    assert {f"word{i % 4}" for i in range(0, 35, 4)} == {"word0"}
    assert source.encode("word0") != source.encode("word1")
    assert source.encode("word1") == source.encode("word2"), "they are not in the sample"


def test_memory_does_not_grow_with_the_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(data_module, "TOKENIZER_PAIRS", 500)
    monkeypatch.setattr(corpus_module, "CHUNK", 256)
    words = [f"w{i}" for i in range(50)]

    def pairs(count: int):
        for i in range(count):
            yield " ".join(words[(i * 7 + j) % 50] for j in range(i % 9 + 3)), words[i % 50] * 5

    def peak(count: int) -> int:
        config = TranslationData(vocabulary=100, held_out=10, held_out_test=10)
        tracemalloc.start()
        stream = PairStream(lambda: pairs(count), None)
        held = HashHoldOut.from_items(stream, lambda pair: pair[0], test=10, valid=10)
        train_on = stream.leaving_out(pair for part in held.held_out() for pair in part)
        tokenizers = train_tokenizers(config, TranslationSplits(train_on, [], [], pairs=held.count))
        corpus = Corpus.build(train_on, *tokenizers, tmp_path / str(count), progress=False)
        assert len(corpus) > 0.8 * count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few, many = peak(1_500), peak(9_500)
    assert many - few < 50_000, f"{(many - few) / 8_000:.1f} bytes for each pair more"


def test_training_reports_what_was_left_out_and_uses_its_store_again(tmp_path, capsys):
    pairs = [*PAIRS[:200], ("sentence", ""), ("a " * 30, "long")]
    recipe = read_recipe(
        None,
        {
            "data": {"pairs": write(tmp_path / "p.tsv", pairs), "vocabulary": 100, "held_out": 5, "max_length": 20}
            | {"bpe_dropout": 0.1},
            "model": {"embedding": 8, "hidden": 8},
            "train": {"epochs": 1},
        },
    )
    metrics = train(recipe, out=tmp_path / "run", progress=False).metrics
    assert (metrics["train_kept"], metrics["train_empty"], metrics["train_over_long"]) == (195, 1, 1)
    assert json.loads((tmp_path / "run" / "model" / "metrics.json").read_text())["train_over_long"] == 1
    built = (tmp_path / "run" / "corpus" / "source.ids").stat().st_mtime_ns
    train(recipe, out=tmp_path / "run", overwrite=True, progress=True)
    assert (tmp_path / "run" / "corpus" / "source.ids").stat().st_mtime_ns == built
    said = capsys.readouterr().err
    assert "Training pairs: 195 kept, 1 empty, 1 over-long" in said
    assert "tokens. Held out: 5.\n" in said
    assert (tmp_path / "run" / "logs" / "metrics-1.csv").is_file(), "the log of the first run is kept"


def test_a_world_is_a_list_that_can_be_read_again():
    splits = read_splits(TranslationData(world="babel:en-fr", examples=20, held_out=3, held_out_test=2))
    assert [splits.pairs, len(list(splits.train)), len(splits.valid), len(splits.test)] == [20, 20, 3, 2]
    assert splits.train.fingerprint
    with pytest.raises(OptionError, match=r"world must be babel:SOURCE-TARGET .*; got 'bable:en-fr'"):
        read_splits(TranslationData(world="bable:en-fr"))


def test_a_recipe_names_a_dataset_with_its_columns_and_splits(tmp_path, monkeypatch):
    hub = {"train": PAIRS, "dev": PAIRS[:3], "test": PAIRS[3:5]}

    def load_dataset(name, configuration=None, *, split, streaming, data_files=None):
        return ({"en": source, "de": target} for source, target in hub[split])

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    table = {"dataset": "some/name", "dataset_columns": ["en", "de"], "dataset_valid": "dev", "dataset_test": "test"}
    splits = read_splits(read_recipe(None, {"data": table}).data)
    assert list(splits.train) == list(splits.train) == PAIRS
    assert (splits.valid, splits.test) == (PAIRS[:3], PAIRS[3:5])
    assert splits.train.fingerprint is None, "what the hub holds may change"
    held = read_splits(TranslationData(dataset="some/name", dataset_columns=("en", "de"), held_out=3))
    assert len(held.valid) == 3
    (tmp_path / "local.json").touch()
    local = TranslationData(folder=str(tmp_path), dataset="local.json", dataset_columns=("en", "de"))
    assert read_splits(local).train.fingerprint
    texts = {"dataset_columns": "en,de", "columns": "1,0"}
    assert parse_values(TranslationData, texts, "--data.") == {"dataset_columns": ("en", "de"), "columns": (1, 0)}


def test_without_the_package_datasets_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(OptionError, match=r"pip install 'regard\[datasets\]'"):
        read_splits(TranslationData(dataset="some/name"))


def test_a_dataset_on_disk_is_read_where_the_package_is_installed(tmp_path):
    pytest.importorskip("datasets", reason="it is an extra of regard; the tests above stand in for it")
    rows = [{"translation": {"en": source, "de": target}} for source, target in PAIRS]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    splits = read_splits(TranslationData(folder=str(tmp_path), dataset="pairs.jsonl", dataset_columns=("en", "de")))
    assert len(list(splits.train)) == 2000 - 5 * 41
    with pytest.raises(DataError, match="'nowhere' of the dataset"):
        read_splits(TranslationData(folder=str(tmp_path), dataset=".", dataset_split="nowhere"))


def test_a_stream_reads_only_what_is_asked_for(tmp_path):
    path = write(tmp_path / "p.tsv", PAIRS)
    stream = PairStream(lambda: read_tsv(path), None)
    assert list(islice(stream, 2)) == PAIRS[:2]
    assert stream.fingerprint is None


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"columns": (0, 0)}, r"columns must be two different columns, counted from 0; got \[0, 0\]"),
        ({"columns": (-1, 0)}, r"columns must be two different columns"),
        ({"vocabulary": 7}, "vocabulary must be 8 or more"),
        ({"source": "a.txt"}, "source and target are two parallel files; give both"),
        ({"valid_target": "a.txt"}, "valid_source and valid_target are two parallel files"),
        ({"world": "babel:en-en"}, "two of the languages"),
        ({"tokens": "bytes"}, "tokens must be one of bpe, word; got 'bytes'"),
        ({"bpe_dropout": 1.0}, "bpe_dropout must be a number.*below 1"),
    ],
)
def test_data_that_cannot_be_read_is_explained(values, says, as_a_user):
    with pytest.raises(OptionError, match=says):
        TranslationData(**values)


def test_without_any_data_the_error_names_the_ways_to_give_some(tmp_path):
    with pytest.raises(OptionError, match="Say what to train on"):
        read_splits(TranslationData())
    with pytest.raises(DataError, match=r"There is no file .*nowhere\.tsv"):
        read_splits(TranslationData(folder=str(tmp_path), pairs="nowhere.tsv"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"copied": 0.6, "cased": 0.5}, r"copied and cased are shares of all pairs; got 0\.6 and 0\.5"),
        ({"tokens": "word", "copied": 0.1}, "byte_fallback, split_digits and copied spell words in pieces; got tokens"),
        ({"tokens": "word", "byte_fallback": True}, "Use tokens 'bpe'"),
        ({"lowercase": True, "cased": 0.1}, r"cased has no effect with lowercase; got cased 0\.1"),
    ],
)
def test_forms_and_bytes_that_have_no_effect_are_refused(fields, message):
    with pytest.raises(OptionError, match=message):
        TranslationData(**fields).check()


def test_a_training_can_spell_in_bytes_and_give_pairs_another_form(tmp_path):
    pairs = [(f"Tom has {number} dogs .", f"Tom a {number} chiens .") for number in range(100, 160)]
    data = {"pairs": write(tmp_path / "pairs.tsv", pairs), "held_out": 2, "vocabulary": 360}
    data |= {"byte_fallback": True, "split_digits": True, "copied": 0.5, "cased": 0.2}
    recipe = read_recipe(None, {"data": data, "model": {"hidden": 8, "embedding": 8}, "train": {"epochs": 1}})
    trained = train(recipe, out=tmp_path / "run", progress=False)
    tokenizer = trained.model.source_tokenizer
    assert tokenizer.byte_fallback
    assert tokenizer.decode(tokenizer.encode("ż 🍕 7")) == "ż 🍕 7"
    corpus = Corpus.open(tmp_path / "run" / "corpus", tokenizer, tokenizer)
    sources = [tokenizer.decode(source) for source, _ in corpus]
    assert any(source.startswith("TOM HAS") for source in sources)
    assert sum(source.startswith("Tom has") for source in sources) in range(5, 45)
