"""Reading sentences: every kind of file, and the errors of damaged ones."""

import gzip
import lzma
import sys
import types
import unicodedata
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import text as text_module
from regard.data.text import read_dataset, read_lines, read_pairs, read_tsv
from regard.errors import DataError, OptionError, RegardError

LINES = ["Le chat dort.", "می‌خواهم بروم", "", "Größe 👩‍👩‍👧", "a\u2028b\x0bc\x85d\re"]
DATA = "".join(line + "\n" for line in LINES).encode()


def write(path, data: bytes):
    if path.suffix.lower() == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(data))
    elif path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("text.txt", data)
    else:
        path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.xz", "a.zip", "A.TXT.GZ", "A.ZIP"])
def test_a_text_reads_the_same_from_every_kind_of_file(tmp_path, name):
    assert list(read_lines(write(tmp_path / name, DATA))) == LINES
    assert list(read_lines(str(tmp_path / name))) == LINES


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"))))
def test_any_lines_come_back_in_nfc(tmp_path_factory, lines):
    path = write(tmp_path_factory.mktemp("any") / "a.txt", "".join(line + "\n" for line in lines).encode())
    expected = [unicodedata.normalize("NFC", line) for line in lines]
    if expected:
        expected[0] = unicodedata.normalize("NFC", lines[0].removeprefix("\ufeff"))
    assert list(read_lines(path)) == expected


def test_bom_and_windows_line_ends_are_removed_and_a_last_line_needs_no_end(tmp_path):
    path = write(tmp_path / "a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n\r\nthree")
    assert list(read_lines(path)) == ["one", "two", "", "three"]


def test_decomposed_letters_are_composed(tmp_path):
    assert list(read_lines(write(tmp_path / "a.txt", "e\u0301te\u0301".encode()))) == ["été"]


def test_a_zip_of_an_unknown_version_is_explained(tmp_path):
    write(tmp_path / "a.zip", "a line")
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 255  # the version that is needed to extract it
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as a zip archive: zip file version 25"):
        list(read_lines(tmp_path / "a.zip"))


def test_a_member_of_a_zip_can_be_named_and_notes_are_ignored(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("_about.txt", "licence")
        archive.writestr("deep/fra.txt", "Go.\tVa !\n")
        archive.writestr("__MACOSX/deep/fra.txt", "junk")
    assert list(read_lines(tmp_path / "a.zip")) == ["Go.\tVa !"]
    assert list(read_lines(tmp_path / "a.zip" / "_about.txt")) == ["licence"]
    assert list(read_tsv(tmp_path / "a.zip/deep/fra.txt", columns=(1, 0))) == [("Va !", "Go.")]
    with pytest.raises(DataError, match=r"There is no b.txt in .*a.zip; it holds .*_about.txt, deep/fra.txt"):
        read_lines(tmp_path / "a.zip" / "b.txt")


def test_a_zip_of_several_texts_asks_which(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b.txt", "")
        archive.writestr("a.txt", "")
    with pytest.raises(DataError, match=r"holds 2 texts, a.txt, b.txt. Name one of them: .*a.zip/b.txt"):
        read_lines(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "none.zip", "w"):
        pass
    with pytest.raises(DataError, match="holds 0 texts, nothing"):
        read_lines(tmp_path / "none.zip")


def test_a_missing_file_is_reported_at_once_with_similar_names(tmp_path):
    (tmp_path / "train.en.gz").write_bytes(b"")
    with pytest.raises(DataError, match=r"There is no file .*train.en\. Did you mean train.en.gz\?"):
        read_lines(tmp_path / "train.en")
    with pytest.raises(DataError, match=r"That folder holds train.en.gz\."):
        read_lines(tmp_path / "zzz")
    with pytest.raises(DataError, match=r"the folder .*nowhere does not exist"):
        read_lines(tmp_path / "nowhere" / "train.en")
    with pytest.raises(DataError, match=r"is a folder, not a text file; it holds train.en.gz"):
        read_lines(tmp_path)


def test_invalid_bytes_are_reported_with_file_and_line(tmp_path):
    path = write(tmp_path / "latin.txt.gz", b"fine\ncaf\xe9\n")
    lines = read_lines(path)
    assert next(lines) == "fine"
    with pytest.raises(DataError, match=r"latin.txt.gz: line 2 is not UTF-8: byte 0xe9 at position 3.*LATIN1"):
        next(lines)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"one\ntw\0o\n", r"is binary, not text: line 2 holds zero bytes"),
        ("text\n".encode("utf-16"), r"is binary.*looks like UTF-16"),
        (gzip.compress(b"text\n" * 9, mtime=0), r"looks compressed with gzip: give it a name that ends in .gz"),
        (lzma.compress(b"text\n"), r"looks compressed with xz"),
    ],
)
def test_files_that_are_not_text_are_refused(tmp_path, data, message):
    with pytest.raises(DataError, match=message):
        list(read_lines(write(tmp_path / "a.txt", data)))


@pytest.mark.parametrize("name", ["a.gz", "a.xz"])
def test_a_broken_archive_is_reported_with_the_line_reached(tmp_path, name):
    path = write(tmp_path / name, DATA * 9)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cannot be read past line \d+"):
        list(read_lines(path))
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be read past line 0"):
        list(read_lines(path))


def test_a_broken_zip_is_reported(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK no")
    with pytest.raises(DataError, match="cannot be read as a zip archive"):
        read_lines(tmp_path / "a.zip")


def test_a_line_without_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "MAX_LINE_BYTES", 64)
    assert list(read_lines(write(tmp_path / "a.txt", b"x" * 60 + b"\n"))) == ["x" * 60]
    with pytest.raises(DataError, match="line 2 is longer than 64 bytes"):
        list(read_lines(write(tmp_path / "a.txt", b"y\n" + b"x" * 999)))


def test_pairs_are_line_by_line(tmp_path):
    source, target = write(tmp_path / "a.en", b"one\ntwo\n"), write(tmp_path / "a.fr.gz", b"un\ndeux")
    assert list(read_pairs(source, target)) == [("one", "un"), ("two", "deux")]


def test_files_of_different_length_are_reported_with_both_counts(tmp_path):
    source, target = write(tmp_path / "a.en", b"1\n2\n3\n"), write(tmp_path / "a.fr", b"1\n" * 7)
    for left, right, message in [
        (source, target, "a.en has 3 lines and .*a.fr has 7"),
        (target, source, "has 7 .*has 3"),
    ]:
        with pytest.raises(DataError, match=message):
            list(read_pairs(left, right))


def test_an_empty_file_is_reported(tmp_path):
    full, empty = write(tmp_path / "a.en", b"1\n2\n"), write(tmp_path / "a.fr", b"")
    with pytest.raises(DataError, match=r"a.fr is empty, but the parallel file has 2 lines"):
        list(read_pairs(full, empty))
    with pytest.raises(DataError, match=r"a.fr is empty"):
        list(read_pairs(empty, empty))
    with pytest.raises(DataError, match=r"a.fr is empty"):
        list(read_tsv(empty))


def test_one_line_is_counted_as_such(tmp_path):
    one, two = write(tmp_path / "a.en", b"a\n"), write(tmp_path / "a.fr", b"a\nb\n")
    with pytest.raises(DataError, match=r"a\.en has 1 line and .*a\.fr has 2\."):
        list(read_pairs(one, two))


def test_columns_of_a_table(tmp_path):
    path = write(tmp_path / "a.tsv.xz", b'a\tb\tc\n"d\te"\tf\n')
    assert list(read_tsv(path)) == [("a", "b"), ('"d', 'e"')]
    assert list(read_tsv(path, columns=(2, 0))) == [("c", "a"), ("f", '"d')]
    with pytest.raises(OptionError, match=r"counted from 0; got columns=\(-1, 0\)"):
        read_tsv(path, columns=(-1, 0))


def test_a_line_with_too_few_columns_is_reported(tmp_path):
    with pytest.raises(DataError, match=r"line 2 has 1 column, but columns \(0, 1\).*'no tab'"):
        list(read_tsv(write(tmp_path / "a.tsv", b"a\tb\nno tab\n")))


def test_without_the_datasets_package_the_fix_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(OptionError, match=r"'opus100' .*pip install 'regard\[datasets\]'.*read_pairs"):
        read_dataset("opus100", "en", "fr")


def test_a_dataset_is_read_by_language_or_by_column(monkeypatch):
    asked = []

    def load_dataset(*arguments, **options):
        asked.append((arguments, options))
        return [{"translation": {"en": "one", "fr": "un"}, "id": 3}, {"en": "e\u0301", "fr": "deux"}]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    assert list(read_dataset("wmt/wmt14:fr-en", "fr", "en", split="test")) == [("un", "one"), ("deux", "é")]
    assert asked == [(("wmt/wmt14", "fr-en"), {"split": "test", "streaming": True})]
    with pytest.raises(DataError, match=r"no text columns 'de' and 'en'; it has en, fr, id, translation"):
        list(read_dataset("wmt", "de", "en"))


def test_a_dataset_on_disk_is_read_as_what_it_is(monkeypatch, tmp_path):
    asked = []

    def load_dataset(*arguments, **options):
        asked.append((*arguments, options["split"], options.get("data_files")))
        return [{"a": "one", "b": "two"}]

    def load_from_disk(name):
        asked.append(name)
        one = load_dataset("on disk", split="")
        return {"test": one} if name.endswith("parts") else one

    stub = types.SimpleNamespace(load_dataset=load_dataset, load_from_disk=load_from_disk)
    monkeypatch.setitem(sys.modules, "datasets", stub)
    for folder, file in [("whole", "state.json"), ("parts", "dataset_dict.json"), ("of:files", "a.parquet")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).touch()
    file = write(tmp_path / "pairs.jsonl", b"{}")
    for name in (file, tmp_path / "whole", tmp_path / "parts", tmp_path / "of:files"):
        assert list(read_dataset(str(name), "a", "b", split="test")) == [("one", "two")]
    on_disk = ("on disk", "", None)
    assert asked == [
        ("json", "test", {"test": str(file)}),
        *(str(tmp_path / "whole"), on_disk),
        *(str(tmp_path / "parts"), on_disk),
        (str(tmp_path / "of:files"), None, "test", None),
    ]
    with pytest.raises(DataError, match=r"The split 'valid' of the dataset .*parts' cannot be read: 'valid'"):
        read_dataset(str(tmp_path / "parts"), "a", "b", split="valid")


def test_every_data_error_is_a_regard_error():
    assert issubclass(DataError, RegardError)
    assert issubclass(DataError, ValueError)
