"""Preparing data sets that are published in other formats than the recipes read."""

import gzip

import pytest
from helpers.files import tar, zipped

from regard.data.captions import read_captions
from regard.data.public import hansards, newsgroups
from regard.data.public.download import get
from regard.data.text import read_tsv
from regard.errors import DataError


@pytest.fixture
def flickr8k(tmp_path):
    (tmp_path / "Flickr8k_Dataset.zip").write_bytes(zipped({"Flicker8k_Dataset/1.jpg": b""}))
    texts = {
        "Flickr8k.token.txt": "".join(f"{n}.jpg#{k}\tA dog {k} .\n" for n in range(4) for k in range(2)),
        "Flickr_8k.trainImages.txt": "0.jpg\n",
        "Flickr_8k.devImages.txt": "2.jpg\n",
        "Flickr_8k.testImages.txt": "1.jpg\n",
        "__MACOSX/._Flickr8k.token.txt": "",
    }
    (tmp_path / "Flickr8k_text.zip").write_bytes(zipped(texts))
    return tmp_path


def test_flickr8k_gets_captions_with_its_official_splits(flickr8k, tmp_path_factory):
    folder = get("flickr8k", tmp_path_factory.mktemp("out"), source=flickr8k)
    captions = read_captions(folder / "captions.tsv.gz")
    splits = {item.image: item.split for item in captions}
    assert splits == {"0.jpg": "train", "1.jpg": "test", "2.jpg": "valid", "3.jpg": ""}
    assert captions[2].captions == ("A dog 0 .", "A dog 1 .")
    assert (folder / "Flickr8k_Dataset.zip").is_file()


def test_flickr8k_without_its_lists_is_refused(flickr8k):
    (flickr8k / "Flickr8k_text.zip").write_bytes(zipped({"Flickr8k.token.txt": b"1.jpg#0\tA dog\n"}))
    with pytest.raises(DataError, match=r"must hold one file Flickr_8k\.trainImages\.txt; it holds 0"):
        get("flickr8k", source=flickr8k)


def test_hansards_become_one_file_of_pairs(tmp_path):
    members = {
        "h/2.e.gz": gzip.compress(b"Mr.  Speaker\n\nyes\n"),
        "h/2.f.gz": gzip.compress("Monsieur\tle Président\nrien\noui\n".encode("latin-1")),
        "h/1.e.gz": gzip.compress(b"no"),
        "h/1.f.gz": gzip.compress(b"non"),
    }
    (tmp_path / hansards.ARCHIVE).write_bytes(tar(members))
    get("hansards", source=tmp_path)
    pairs = list(read_tsv(tmp_path / hansards.PAIRS))
    assert pairs == [("no", "non"), ("Mr. Speaker", "Monsieur le Président"), ("yes", "oui")]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"1.e.gz": gzip.compress(b"a\nb\n"), "1.f.gz": gzip.compress(b"a\n")},
            r"1\.e\.gz has 2 lines and 1\.f\.gz has 1",
        ),
        ({"1.e.gz": gzip.compress(b"a\n")}, r"holds 1\.e\.gz without 1\.f\.gz"),
        ({"1.e.gz": b"no gzip", "1.f.gz": gzip.compress(b"a\n")}, rf"{hansards.ARCHIVE} cannot be read"),
    ],
)
def test_broken_hansards_are_refused_and_nothing_is_written(tmp_path, members, message):
    (tmp_path / hansards.ARCHIVE).write_bytes(tar(members))
    with pytest.raises(DataError, match=message):
        get("hansards", source=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [hansards.ARCHIVE]


def test_newsgroups_are_prepared_from_the_published_archive(tmp_path):
    posts = {
        f"20news-bydate-train/sci.space/{n}": f"Subject: topic {n}\n\nRe\xe9ntry {n}".encode("latin-1")
        for n in range(40)
    }
    posts["20news-bydate-test/sci.space/99"] = b"Subject: new\n\nwords"
    (tmp_path / newsgroups.ARCHIVE).write_bytes(tar(posts, "w:gz"))
    counts = newsgroups.prepare(tmp_path, tmp_path / "out")
    assert counts["train"].kept + counts["valid"].kept == 40
    assert counts["test"].kept == 1
    assert "Reéntry" in (tmp_path / "out" / "train.body").read_text(encoding="utf-8")
    (tmp_path / newsgroups.ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be read"):
        newsgroups.prepare(tmp_path, tmp_path / "out")
