"""Labelled documents from every format, with bad rows named by their lines."""

import gzip
import json
import lzma
import tarfile

import pytest
from helpers.files import tar

from regard.data.documents import BadRows, read_documents
from regard.data.text import split_sentences
from regard.errors import DataError


def pairs(path, **options):
    return [(document.label, document.text) for document in read_documents(path, **options)]


def test_csv_with_quotes_and_line_ends_inside(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('label,text\npos,"Good, and ""new"".\nTwo lines."\nneg,Bad\n', encoding="utf-8")
    assert pairs(path) == [("pos", 'Good, and "new".\nTwo lines.'), ("neg", "Bad")]
    with pytest.raises(DataError, match=r"has no column 'body'; its first line has 'label', 'text'"):
        pairs(path, columns=("body", "label"))


def test_tsv_without_a_header(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b'1\tA "quote\n0\tB\n'))
    assert pairs(path, columns=("1", "0")) == [("1", 'A "quote'), ("0", "B")]


def test_json_lines_with_text_or_sentences(tmp_path):
    path = tmp_path / "a.jsonl.xz"
    rows = [
        {"group": 1, "text": "One."},
        {"group": "b", "sentences": ["two", "three"], "rationale_token_spans": [[0, 1]]},
    ]
    path.write_bytes(lzma.compress("\n".join(map(json.dumps, rows)).encode()))
    first, second = read_documents(path, columns=("text", "group"))
    assert (first.label, first.text) == ("1", "One.")
    assert (second.label, second.sentences, second.rationale) == ("b", ("two", "three"), ((0, 1),))
    assert second.key == "two\nthree"


BAD = {
    "a.csv": ("text,label\ngood,1\nthree,columns,here\n,1\nno label,\nfine,0\n", [3, 4, 5]),
    "a.jsonl": ('{"text": "good", "label": 1}\n{"text": 3, "label": 1}\nnot json\n[1]\n{"text": " ", "label": 1}\n'
                '{"label": 1}\n{"text": "fine", "label": 0}\n', [2, 3, 4, 5, 6]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_named_by_their_line_and_skipped_only_when_asked(name, tmp_path):
    content, wrong = BAD[name]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=rf"{name}: line {wrong[0]} .*--data.skip-bad true"):
        pairs(path)
    bad = BadRows(skip=True)
    assert pairs(path, bad=bad) == [("1", "good"), ("0", "fine")]
    assert bad.count == len(wrong)
    for line in wrong[:5]:
        assert f"line {line} " in str(bad)


def test_an_unclosed_quote_is_a_bad_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\nfine,1\n"never closed,1\nfine,0\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 3"):
        pairs(path)


def reviews_folder(root):
    for label, names in {"pos": ["0_9.txt", "1_8.txt"], "neg": ["0_1.txt"], "unsup": ["0_0.txt"]}.items():
        (root / label).mkdir(parents=True)
        for name in names:
            (root / label / name).write_text(f"{label} {name}", encoding="utf-8")
    return root


def test_the_folder_of_imdb_and_its_archive(tmp_path):
    folder = reviews_folder(tmp_path / "aclImdb" / "train")
    expected = [("neg", "neg 0_1.txt"), ("pos", "pos 0_9.txt"), ("pos", "pos 1_8.txt")]
    assert pairs(folder) == expected
    with tarfile.open(tmp_path / "aclImdb_v1.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "aclImdb", "aclImdb")
    assert sorted(pairs(tmp_path / "aclImdb_v1.tar.gz" / "aclImdb" / "train")) == expected


def test_news_posts_in_latin_1(tmp_path):
    names = ("20news-bydate-train/sci.med/1", "20news-bydate-test/sci.med/2")
    posts = dict.fromkeys(names, b"Subject: caf\xe9\r\n\r\nbody\r\n")
    (tmp_path / "20news-bydate.tar.gz").write_bytes(tar(posts, "w:gz"))
    found = pairs(tmp_path / "20news-bydate.tar.gz" / "20news-bydate-train")
    assert found == [("sci.med", "Subject: café\n\nbody\n")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_states_the_encoding_and_is_no_text(encoding, tmp_path):
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    (tmp_path / "films" / "pos").mkdir(parents=True)
    (tmp_path / "films" / "pos" / "1.txt").write_bytes((mark + "good film, café").encode(encoding))
    assert pairs(tmp_path / "films") == [("pos", "good film, café")]
    with tarfile.open(tmp_path / "films.tar", "w") as archive:
        archive.add(tmp_path / "films", "films")
    assert pairs(tmp_path / "films.tar") == [("pos", "good film, café")]


def test_missing_empty_and_unknown_files(tmp_path):
    with pytest.raises(DataError, match="There is no file or folder"):
        pairs(tmp_path / "nowhere.bin")
    (tmp_path / "a.bin").write_text("x")
    with pytest.raises(DataError, match="set format to csv"):
        pairs(tmp_path / "a.bin")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no documents"):
        pairs(tmp_path / "empty")


def test_sentences_of_any_script():
    assert split_sentences('Mr. Smith paid $5.50. He said "No." Then left.') == [
        "Mr. Smith paid $5.50.",
        'He said "No."',
        "Then left.",
    ]
    assert split_sentences("你好。我很好\uff01") == ["你好。", "我很好\uff01"]
    assert split_sentences("One<br /><br />Two") == ["One", "Two"]
    assert split_sentences("a b\n\nc\nd", lines=True) == ["a b", "c", "d"]
    assert split_sentences("a\rb\r\nc\u2028d\x0be", lines=True) == ["a\rb", "c\u2028d\x0be"], (
        "as `read_lines` reads a file"
    )
    assert split_sentences(" \n ") == []
