"""Pack what the document recipes train on into one small folder, to be copied to a machine with a GPU.

    python benchmarks/pack_documents.py DATA build/documents

DATA holds the folders imdb, 20newsgroups, glove, movie_rationales and tweet_spans. Texts are written in lower case and
already split into sentences, so that the other machine needs no sentence splitter. Word vectors are kept for words of
the vocabulary only, rounded to 1/32. Of news posts, the first 60 lines are kept, without encoded data, and words
that occur less than three times are replaced by a mark. Nothing is chosen by looking at a test set.
"""

import argparse
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.sentences import split_sentences
from regard.data.text import read_lines
from regard.data.tokenizer import Tokenizer

WORD = re.compile(r"[^\W\d_]+|\d+")
MAX_POST_LINES = 60
MIN_POST_COUNT = 3
ROUNDING = 32
VECTOR_VOCABULARY = 32_000
# Literal contexts instead of byte alignment: text becomes a few percent smaller.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 4, "pb": 0}]


def rows(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in read_lines(path))


def write(path: Path, items: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8", format=lzma.FORMAT_XZ, filters=FILTERS) as stream:
        for item in items:
            stream.write(json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB", flush=True)


def review(row: dict[str, Any]) -> dict[str, Any]:
    sentences = [" ".join(sentence.split()) for sentence in split_sentences(row["text"].lower())]
    return {"label": row["label"], "sentences": sentences}


def post_lines(text: str) -> list[str]:
    text = text if "\n" in text.strip() else text.replace("\t", "\n")
    lines = [" ".join(line.lower().split()) for line in text.split("\n")]
    return [line for line in lines if not (len(line) > 40 and " " not in line)][:MAX_POST_LINES]


def posts(path: Path, common: set[str]) -> Iterator[dict[str, Any]]:
    for row in rows(path):
        lines = [
            WORD.sub(lambda found: found[0] if found[0] in common else "⁇", line) for line in post_lines(row["text"])
        ]
        yield {"group": row["group"], "text": "\n".join(lines)}


def vectors(source: Path, target: Path, texts: Iterable[str]) -> None:
    """The vectors of the most frequent words."""
    tokenizer = Tokenizer.train(texts, size=VECTOR_VOCABULARY, kind="word", lowercase=True)
    wanted = set(tokenizer.pieces(range(len(tokenizer))))
    with np.load(source) as archive:
        words, numbers = str(archive["words"]).split("\n"), archive["vectors"]
    kept = [place for place, word in enumerate(words) if word in wanted]
    rounded = (np.round(numbers[kept].astype(np.float32) * ROUNDING) / ROUNDING).astype(np.float16)
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, vectors=rounded, words=np.array([words[place] for place in kept]))
    print(f"{target}: {len(kept)} words, {target.stat().st_size / 2**20:.2f} MiB", flush=True)


def marked(text: str, start: int, end: int) -> list[list[int]]:
    """The words that a span of characters touches, as one span of words."""
    places = [(found.start(), found.end()) for found in re.finditer(r"\S+", text)]
    touched = [place for place, (left, right) in enumerate(places) if left < end and right > start]
    return [[touched[0], touched[-1] + 1]] if touched else []


def tweets(path: Path) -> Iterator[dict[str, Any]]:
    for line in read_lines(path):
        label, start, end, _, text = line.split("\t", 4)
        spans = marked(text, int(start), int(end))
        if label != "neutral" and spans:
            yield {"label": label, "sentences": [" ".join(text.lower().split())], "rationale_token_spans": spans}


def movies(path: Path) -> Iterator[dict[str, Any]]:
    for row in rows(path):
        if row["split"] == "val":
            yield {key: row[key] for key in ("label", "sentences", "rationale_token_spans")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    pack(given.data, given.out)


def pack(data: Path, out: Path) -> None:
    glove = next((data / "glove").glob("*.npz"))
    imdb = {"train": data / "imdb/imdb_train.jsonl.xz", "test": data / "imdb/imdb_test_a.jsonl.xz"}
    for part, path in imdb.items():
        write(out / f"imdb/{part}.jsonl.xz", map(review, rows(path)))
    news = {part: data / f"20newsgroups/20news_bydate_{part}.jsonl.xz" for part in ("train", "test")}
    counts: Counter[str] = Counter()
    for row in rows(news["train"]):
        counts.update(chain.from_iterable(WORD.findall(line) for line in post_lines(row["text"])))
    common = {word for word, count in counts.items() if count >= MIN_POST_COUNT}
    for part, path in news.items():
        write(out / f"newsgroups/{part}.jsonl.xz", posts(path, common))
    posted = ("\n".join(post_lines(row["text"])) for row in rows(news["train"]))
    vectors(glove, out / "vectors.npz", chain((row["text"] for row in rows(imdb["train"])), posted))
    write(out / "rationales/movies.jsonl.xz", movies(data / "movie_rationales/movie_rationales.jsonl.xz"))
    write(out / "rationales/tweets.jsonl.xz", tweets(data / "tweet_spans/valid.tsv.xz"))
    total = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out}: {total / 2**20:.1f} MiB in all")


if __name__ == "__main__":
    main()
