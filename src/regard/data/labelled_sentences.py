"""Sentences with labels: sentiment trees, pairs of sentences for inference, tagged words, and labelled lines."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.data.text import parsed, read_lines
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
    return parsed(path, _tree, "a labelled tree, such as (3 (2 It) (4 works))")


def read_labelled(path: str | os.PathLike[str]) -> Iterator[Labelled]:
    """Read lines of label<TAB>text."""

    def labelled(line: str) -> Labelled:
        label, text = _cells(line, 2)
        return Labelled((text,), label)

    return parsed(path, labelled, "label<TAB>text")


def read_inference(path: str | os.PathLike[str]) -> Iterator[Labelled]:
    """Read premises and hypotheses with their relation: label<TAB>premise<TAB>hypothesis, or the JSON lines of SNLI.

    Pairs without a label, on which the annotators of SNLI did not agree ("-"), are left out.
    """
    name = Path(path).name.removesuffix(".gz").removesuffix(".xz").removesuffix(".zip")
    if name.endswith((".jsonl", ".json")):
        rows = parsed(path, _json_pair, "a JSON object with sentence1, sentence2 and gold_label")
    else:
        rows = parsed(path, _tsv_pair, "label<TAB>premise<TAB>hypothesis")
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


def _cells(line: str, count: int) -> list[str]:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) != count:
        raise ValueError(f"it has {counted(len(cells), 'column')}")
    return cells


def _tsv_pair(line: str) -> Labelled:
    label, premise, hypothesis = _cells(line, 3)
    return Labelled((premise, hypothesis), label)


def _json_pair(line: str) -> Labelled:
    row = json.loads(line)
    return Labelled((str(row["sentence1"]), str(row["sentence2"])), str(row["gold_label"]))


def _tree(line: str) -> Tree:
    """Parse brackets without recursion, so that no line can exhaust the stack."""
    stack: list[tuple[list[str], list[Tree]]] = []
    for token in _BRACKETS.findall(line):
        if token == "(":  # noqa: S105 - a bracket, not a password
            stack.append(([], []))
        elif not stack:
            raise ValueError("it does not begin with a bracket")
        elif token != ")":  # noqa: S105
            stack[-1][0].append(token)
        else:
            names, children = stack.pop()
            # A leaf has a label and a word; any other node a label and the nodes below it.
            if len(names) != (1 if children else 2):
                raise ValueError("a node has a label, and one word or nodes below it")
            words = tuple(word for child in children for word in child.words) or (_unescaped(names[1]),)
            tree = Tree(names[0], words, tuple(children))
            if not stack:
                return tree
            stack[-1][1].append(tree)
    raise ValueError("it has a bracket that is not closed")


def _unescaped(word: str) -> str:
    return {"-LRB-": "(", "-RRB-": ")"}.get(word, word)
