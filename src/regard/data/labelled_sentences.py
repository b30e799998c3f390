"""Sentences with labels: sentiment trees, pairs of sentences for inference, tagged words, and labelled lines."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.data.text import read_lines
from regard.errors import DataError, counted

# Words may contain a no-break space, as 8 1/2 does.
_BRACKETS = re.compile(r"\(|\)|[^ \t()]+")


@dataclass(frozen=True)
class Labelled:
    """A text, or two texts that belong together, and its label."""

    texts: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Tree:
    """A node of a labelled parse tree: the words below it, its label, and the nodes below it."""

    label: str
    words: tuple[str, ...]
    children: tuple["Tree", ...] = ()

    def phrases(self) -> Iterator["Tree"]:
        """Yield this node and all nodes below it."""
        yield self
        for child in self.children:
            yield from child.phrases()


def read_trees(path: str | os.PathLike[str]) -> Iterator[Tree]:
    """Read labelled trees in brackets, one per line, as the Stanford Sentiment Treebank has them: (3 (2 It) (4 works)).

    -LRB- and -RRB-, which stand for brackets in the text, become ( and ).
    """
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield _parse_tree(line, f"{path}: line {number}")


def read_labelled(path: str | os.PathLike[str]) -> Iterator[Labelled]:
    """Read lines of label<TAB>text."""
    for number, cells in _rows(path):
        if len(cells) != 2:
            raise DataError(f"{path}: line {number} has {counted(len(cells), 'column')}; it should be label<TAB>text.")
        yield Labelled((cells[1],), cells[0])


def read_inference(path: str | os.PathLike[str]) -> Iterator[Labelled]:
    """Read premises and hypotheses with their relation: label<TAB>premise<TAB>hypothesis, or the JSON lines of SNLI.

    Pairs without a label, on which the annotators of SNLI did not agree ("-"), are left out.
    """
    name = Path(path).name.removesuffix(".gz").removesuffix(".xz").removesuffix(".zip")
    rows = _json_pairs(path) if name.endswith((".jsonl", ".json")) else _tsv_pairs(path)
    return (pair for pair in rows if pair.label != "-")


def read_tagged(path: str | os.PathLike[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Read words and their tags, word<TAB>tag in each line, with an empty line after each sentence."""
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if not line.strip():
            if words:
                yield tuple(words), tuple(tags)
            words, tags = [], []
        elif len(cells) != 2 or not all(cell.strip() for cell in cells):
            raise DataError(f"{path}: line {number} should be word<TAB>tag; got {line[:60]!r}.")
        else:
            words.append(cells[0].strip())
            tags.append(cells[1].strip())
    if words:
        yield tuple(words), tuple(tags)


def _rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield number, [cell.strip() for cell in line.split("\t")]


def _tsv_pairs(path: str | os.PathLike[str]) -> Iterator[Labelled]:
    for number, cells in _rows(path):
        if len(cells) != 3:
            raise DataError(
                f"{path}: line {number} has {counted(len(cells), 'column')}; it should be "
                "label<TAB>premise<TAB>hypothesis."
            )
        yield Labelled((cells[1], cells[2]), cells[0])


def _json_pairs(path: str | os.PathLike[str]) -> Iterator[Labelled]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield Labelled((str(row["sentence1"]), str(row["sentence2"])), str(row["gold_label"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path}: line {number} should be a JSON object with sentence1, sentence2 and gold_label: {error!r}."
            ) from None


def _parse_tree(line: str, place: str) -> Tree:
    """Parse brackets without recursion, so that no line can exhaust the stack."""
    stack: list[tuple[list[str], list[Tree]]] = []
    for token in _BRACKETS.findall(line):
        if token == "(":  # noqa: S105 - a bracket, not a password
            stack.append(([], []))
        elif not stack:
            raise DataError(f"{place} does not begin with a bracket: {line[:60]!r}.")
        elif token != ")":  # noqa: S105
            stack[-1][0].append(token)
        else:
            names, children = stack.pop()
            # A leaf has a label and a word; any other node a label and the nodes below it.
            if len(names) != (1 if children else 2):
                raise DataError(f"{place} is not a labelled tree, such as (3 (2 It) (4 works)): {line[:60]!r}.")
            words = tuple(word for child in children for word in child.words) or (_unescaped(names[1]),)
            tree = Tree(names[0], words, tuple(children))
            if not stack:
                return tree
            stack[-1][1].append(tree)
    raise DataError(f"{place} has a bracket that is not closed: {line[:60]!r}.")


def _unescaped(word: str) -> str:
    return {"-LRB-": "(", "-RRB-": ")"}.get(word, word)
