"""Which sentences of a story answer a question? Attention in hops over the facts of bAbI (Weston et al. 2015).

    python benchmarks/story_questions.py en-10k results.jsonl                     # every task of the folder, one seed
    python benchmarks/story_questions.py en-10k results.jsonl --tasks 1 2 6 --seeds 3 --device cuda
    python benchmarks/story_questions.py - results.jsonl                          # only print the table

A memory network (Sukhbaatar et al. 2015): a GRU reads each sentence and the question; the question attends to the
sentences, a second GRU adds what was read to it, and after three such hops a linear layer names the answer. Sentences
also have an embedding of how long ago they were read. Each task is trained alone; a tenth of its training stories is
held out, and chooses the epoch and the best of several seeds. Nobody tells the model which sentences are the
supporting facts: "first" is the share of test questions whose most attended sentence (the largest weight of any hop) is
one of them, "all" the share in which no sentence is attended to more than a supporting fact.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

from regard import Attention, score

MAX_FACTS = 70
"""The last facts of a story that are kept; only stories of task 3 are longer, as in the paper."""
PAD = 0


@dataclass(frozen=True)
class Question:
    """A question about the facts before it, its answer, and which of the facts support it."""

    facts: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]
    answer: str
    support: tuple[int, ...]
    story: int
    """The story, counted from 0: its questions are held out together."""


def words_of(text: str) -> tuple[str, ...]:
    """The words of a sentence in lower case, without punctuation."""
    return tuple(re.findall(r"[a-z']+", text.lower()))


def read_questions(lines: Sequence[str]) -> Iterator[Question]:
    """The questions of a file of bAbI: "1 fact", or "3 question TAB answer TAB numbers of supporting facts"."""
    facts: dict[int, tuple[str, ...]] = {}
    story = -1
    for line in lines:
        number, _, text = line.partition(" ")
        if int(number) == 1:
            facts, story = {}, story + 1
        question, *rest = text.split("\t")
        if not rest:
            facts[int(number)] = words_of(text)
            continue
        kept = list(facts)[-MAX_FACTS:]
        support = tuple(kept.index(int(each)) for each in rest[1].split() if int(each) in kept)
        yield Question(tuple(facts[each] for each in kept), words_of(question), rest[0], support, story)


@dataclass(frozen=True)
class Batch:
    """Questions as tensors."""

    facts: Tensor
    """(b, n, w) words of the facts, the last fact last; PAD before the first and after the last word."""
    present: Tensor
    """(b, n) which facts exist."""
    question: Tensor
    answer: Tensor
    support: Tensor
    """(b, n) which facts support the answer."""

    def part(self, rows: Tensor) -> "Batch":
        """Some of the questions."""
        return Batch(*(each[rows] for each in vars(self).values()))

    def to(self, device: str) -> "Batch":
        """The same on a device."""
        return Batch(*(each.to(device) for each in vars(self).values()))


def encode(questions: Sequence[Question], words: dict[str, int], answers: dict[str, int]) -> Batch:
    """Questions as tensors; stories end at the last column. An answer that is not known is -1."""
    most = max(len(each.facts) for each in questions)
    longest = max(len(fact) for each in questions for fact in (*each.facts, each.words))
    facts = torch.zeros(len(questions), most, longest, dtype=torch.long)
    asked = torch.zeros(len(questions), longest, dtype=torch.long)
    support = torch.zeros(len(questions), most, dtype=torch.bool)
    for row, each in enumerate(questions):
        first = most - len(each.facts)
        for index, fact in enumerate(each.facts, first):
            facts[row, index, : len(fact)] = torch.tensor([words.get(word, PAD) for word in fact])
        asked[row, : len(each.words)] = torch.tensor([words.get(word, PAD) for word in each.words])
        support[row, [first + index for index in each.support]] = True
    answer = torch.tensor([answers.get(each.answer, -1) for each in questions])
    return Batch(facts, facts.ne(PAD).any(-1), asked, answer, support)


class MemoryNetwork(nn.Module):
    """Answers a question in hops: attend to the facts, then add what was read to the question.

    Each hop scores facts with (W m)'(U f), a two-matrix score with the facts themselves as values (Fleuret 13.1).
    """

    def __init__(self, num_words: int, num_answers: int, num_facts: int, *, hidden: int, hops: int, dropout: float):
        super().__init__()
        self.embedding = nn.Embedding(num_words, hidden, padding_idx=PAD)
        self.reader = nn.GRU(hidden, hidden, batch_first=True)
        self.ago = nn.Embedding(num_facts, hidden)
        nn.init.normal_(self.ago.weight, std=0.1)
        self.hops = nn.ModuleList(Attention(score.Projected(hidden, hidden, hidden)) for _ in range(hops))
        self.update = nn.GRUCell(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * hidden, num_answers)

    def read(self, sentences: Tensor) -> Tensor:
        """The state of the GRU after the last word of each sentence (rows, words)."""
        states, _ = self.reader(self.dropout(self.embedding(sentences)))
        last = sentences.ne(PAD).sum(-1).clamp_min(1) - 1
        return states[torch.arange(len(states), device=last.device), last]

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The logits of the answers, and the weights (b, hops, n) of the facts."""
        rows, count, _ = batch.facts.shape
        ago = torch.arange(count - 1, -1, -1, device=batch.facts.device).clamp_max(len(self.ago.weight) - 1)
        facts = self.read(batch.facts.flatten(0, 1)).view(rows, count, -1) + self.ago(ago)
        question = self.read(batch.question)
        state, weights = question, []
        for attention in self.hops:
            attended = attention(
                state.unsqueeze(1), attention.remember(facts, batch.present.unsqueeze(1)), weights=True
            )
            weights.append(attended.weights)
            state = self.update(self.dropout(attended.context[:, 0]), state)
        return self.output(self.dropout(torch.cat([state, question], -1))), torch.cat(weights, 1)


@torch.inference_mode()
def measure(model: MemoryNetwork, batch: Batch) -> dict[str, float]:
    """Accuracy, and how often the most attended facts are the supporting ones."""
    model.eval()
    right, first, every = [], [], []
    for rows in torch.arange(len(batch.answer)).split(500):
        part = batch.part(rows.to(batch.answer.device))
        logits, weights = model(part)
        right.append(logits.argmax(-1).eq(part.answer))
        attended = weights.amax(1)
        first.append(part.support.gather(-1, attended.argmax(-1, keepdim=True)).squeeze(-1))
        least = attended.masked_fill(~part.support, 2).amin(-1)
        every.append(attended.masked_fill(part.support, 0).amax(-1) <= least)
    return {
        name: round(100 * torch.cat(each).float().mean().item(), 2)
        for name, each in (("accuracy", right), ("first", first), ("all", every))
    }


def train_task(folder: Path, task: int, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train on one task with one seed; the figures of the test set, and of the held-out questions."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    given = list(read_questions(only(folder, f"qa{task}_*_train.txt").read_text().splitlines()))
    test = list(read_questions(only(folder, f"qa{task}_*_test.txt").read_text().splitlines()))
    # Every tenth story: the stories of a file are in no order.
    held = {each.story for each in given if each.story % 10 == 9}
    parts = [each for each in given if each.story not in held], [each for each in given if each.story in held], test
    words = {word: number for number, word in enumerate(vocabulary(given), PAD + 1)}
    answers = {answer: number for number, answer in enumerate(sorted({each.answer for each in given}))}
    train, valid, judged = (encode(part, words, answers).to(options.device) for part in parts)
    model = MemoryNetwork(
        len(words) + 1, len(answers), MAX_FACTS, hidden=options.hidden, hops=options.hops, dropout=options.dropout
    ).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    updates = options.epochs * -(-len(train.answer) // options.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.learning_rate, updates, pct_start=0.1)
    best: dict[str, Any] = {"valid": -1.0}
    for epoch in range(1, options.epochs + 1):
        model.train()
        for rows in torch.randperm(len(train.answer), device=options.device).split(options.batch):
            part = train.part(rows)
            loss = functional.cross_entropy(model(part)[0], part.answer)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        if epoch % options.validate_every and epoch < options.epochs:
            continue
        accuracy = measure(model, valid)["accuracy"]
        if accuracy >= best["valid"]:
            best = {"valid": accuracy, "epoch": epoch, **measure(model, judged)}
    settings = {
        name: getattr(options, name) for name in ("epochs", "hidden", "hops", "dropout", "learning_rate", "batch")
    }
    seconds = round(time.perf_counter() - started, 1)
    return {"task": task, "seed": seed, "train": len(train.answer), **best, **settings, "seconds": seconds}


def vocabulary(questions: Sequence[Question]) -> list[str]:
    """All words of the questions and their facts, in order."""
    return sorted({word for each in questions for sentence in (*each.facts, each.words) for word in sentence})


def only(folder: Path, pattern: str) -> Path:
    """The one file of a folder that fits a pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} needs one file {pattern}; it has {len(found)}.")
    return found[0]


def print_table(results: Path) -> None:
    """The best seed of each task by its held-out questions, and the means."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    best = [max((row for row in rows if row["task"] == task), key=lambda row: row["valid"]) for task in tasks_of(rows)]
    table = Table("task", "questions", "accuracy", "first", "all", "seed")
    for row in best:
        table.add_row(*(str(row[name]) for name in ("task", "train", "accuracy", "first", "all", "seed")))
    mean = sum(row["accuracy"] for row in best) / len(best)
    above = sum(row["accuracy"] > 95 for row in best)
    Console().print(table, f"Mean accuracy {mean:.1f} %; {above} of {len(best)} tasks above 95 %.")


def tasks_of(rows: Sequence[dict[str, Any]]) -> list[int]:
    """The tasks that were trained."""
    return sorted({row["task"] for row in rows})


def main() -> None:
    """Train what is asked for, append each result to a file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the folder en-10k of bAbI, or - to print the table alone")
    parser.add_argument("results", type=Path, help="file to append a line of JSON to for each training")
    parser.add_argument("--tasks", type=int, nargs="*", default=[], help="by default all that the folder has")
    parser.add_argument(
        "--seeds", type=int, default=1, help="trainings of each task; the best by held-out questions counts"
    )
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--validate-every", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--hops", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.folder != "-":
        folder = Path(options.folder)
        known = sorted(int(file.name[2 : file.name.index("_")]) for file in folder.glob("qa*_train.txt"))
        for task in options.tasks or known:
            for seed in range(1, options.seeds + 1):
                result = train_task(folder, task, seed, options)
                print(json.dumps(result), flush=True)
                with options.results.open("a") as file:
                    file.write(json.dumps(result) + "\n")
    print_table(options.results)


if __name__ == "__main__":
    main()
