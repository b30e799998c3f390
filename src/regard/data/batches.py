"""Pairs of ids to padded tensors: batches of about equal size in tokens, in an order that a number decides."""

import hashlib
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from regard.data.corpus import Corpus
from regard.data.tokenizer import END, PAD, START, UNKNOWN, Tokenizer
from regard.errors import DataError, OptionError, ShapeError


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences side by side, PAD after the end of each: source ... END, and START target ... END.

    The lengths stay on the CPU, wherever the rest goes: whoever asks a GPU for them waits for all that it has to do.
    """

    source: Int[Tensor, "b n"]
    source_lengths: Int[Tensor, "b"]
    """With END; the padding mask is mask.padding(source_lengths)."""
    target: Int[Tensor, "b m"]
    """A decoder reads target[:, :-1] and is to say target[:, 1:]."""
    target_lengths: Int[Tensor, "b"]
    """With START and END."""

    def __len__(self) -> int:
        return len(self.source)

    def to(self, device: torch.device | str, *, non_blocking: bool = True) -> "Batch":
        """The batch on a device; `non_blocking` has a say on the way to a GPU alone."""
        non_blocking = non_blocking and torch.device(device).type == "cuda"
        source, target = (side.to(device, non_blocking=non_blocking) for side in (self.source, self.target))
        return Batch(source, self.source_lengths, target, self.target_lengths)

    def pin_memory(self) -> "Batch":
        """The batch in page-locked memory, from where it can be moved to a GPU while the GPU computes."""
        return Batch(self.source.pin_memory(), self.source_lengths, self.target.pin_memory(), self.target_lengths)


def collate(pairs: Sequence[tuple[Any, Any]]) -> Batch:
    """One batch of pairs of ids, as lists or arrays; the collate_fn of a torch DataLoader."""
    if not pairs:
        raise DataError("A batch is of one or more pairs; got none.")
    sources, targets = zip(*pairs, strict=True)
    return Batch(*_pad(sources, before=(), after=(END,)), *_pad(targets, before=(START,), after=(END,)))


def _pad(sentences: Sequence[Any], *, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    lengths = [len(before) + len(sentence) + len(after) for sentence in sentences]
    padded = np.full((len(sentences), max(lengths)), PAD, dtype=np.int64)
    for row, sentence, length in zip(padded, sentences, lengths, strict=True):
        row[: len(before)] = before
        row[len(before) : length - len(after)] = sentence
        row[length - len(after) : length] = after
    return torch.from_numpy(padded), torch.tensor(lengths)


class TokenBatches(Sampler[list[int]]):
    """Batches of examples of like length, each example once an epoch: the batch_sampler of a torch DataLoader.

    rows x the longest side of them <= max_tokens, where a source counts one more for its END and a target two more for
    START and END: what is counted is what lies in the padded batch. An example that is longer by itself is a batch by
    itself. Examples are sorted by target and then source length; with `shuffle`, those of equal lengths are mixed, and
    so are the batches. (seed, epoch) decides the order, and the number of batches is the same in every epoch.

    Call `set_epoch` before each epoch: without it, each has the same order.
    """

    def __init__(self, lengths: Int[np.ndarray, "n 2"], *, max_tokens: int, shuffle: bool, seed: int) -> None:
        if max_tokens < 1:
            raise OptionError(f"max_tokens is 1 or more; got {max_tokens}.")
        lengths = np.ascontiguousarray(lengths, dtype=np.int64)
        if lengths.ndim != 2 or lengths.shape[1] != 2:
            raise ShapeError(f"lengths is (n, 2), source and target of each example; got {lengths.shape}.")
        if not len(lengths):
            raise DataError("There are no examples to make batches of: lengths is empty.")
        source, target = lengths.T
        # In every second group of targets the sources run down, so that the next group begins where this one ended.
        self._keys = (np.where(target % 2, -source, source), target)
        self._shuffle, self._seed = shuffle, seed
        longest = np.maximum(source + 1, target + 2)[np.lexsort(self._keys)]
        # Examples change places only with others of the same lengths, so the cuts hold for every epoch.
        self._cuts = _cut(longest, max_tokens)
        self._print = hashlib.sha256(f"{max_tokens} {shuffle}".encode() + lengths.tobytes()).hexdigest()
        self._epoch = self._position = self._resume_at = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of this epoch; a loaded state keeps its position if it is of the same epoch."""
        if epoch != self._epoch:
            self._epoch, self._position, self._resume_at = epoch, 0, 0

    @property
    def sampler(self) -> "TokenBatches":
        """Itself: Lightning calls `set_epoch` on the `sampler` of a batch sampler."""
        return self

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        start, self._resume_at = self._resume_at, 0
        self._position = start
        return self._run(self._order(), start)

    @property
    def start(self) -> int:
        """The batch that the next pass begins with: 0, or where a loaded state stands."""
        return self._resume_at

    def state_dict(self, batches_done: int | None = None) -> dict[str, Any]:
        """Where the epoch stands. A loader with workers asks for batches ahead: then say how many were trained on."""
        position = self._position if batches_done is None else batches_done
        return {"seed": self._seed, "epoch": self._epoch, "position": position, "fingerprint": self._print}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next pass goes on where the state was taken; passes after it are whole."""
        if state["fingerprint"] != self._print or state["seed"] != self._seed:
            raise DataError(
                "This state belongs to other batches: the examples, max_tokens, shuffle or seed have changed "
                f"(the seed was {state['seed']} and is {self._seed}). Resume with the same, or begin a new epoch."
            )
        if not 0 <= state["position"] <= len(self):
            raise DataError(f"This state stands at batch {state['position']}, of {len(self)}.")
        self._epoch = state["epoch"]
        self._position = self._resume_at = state["position"]

    def _run(self, batches: Iterator[list[int]], start: int) -> Iterator[list[int]]:
        for number, batch in enumerate(batches):
            if number >= start:
                self._position = number + 1
                yield batch

    def _order(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self._seed, self._epoch))
        count = len(self._keys[0])
        mixed = random.permutation(count) if self._shuffle else np.arange(count)
        examples = mixed[np.lexsort([key[mixed] for key in self._keys])]
        batches = random.permutation(len(self)) if self._shuffle else np.arange(len(self))
        return (examples[self._cuts[batch] : self._cuts[batch + 1]].tolist() for batch in batches)


def _cut(longest: Int[np.ndarray, "n"], max_tokens: int) -> list[int]:
    """Where batches begin and end, if each takes all it may."""
    cuts = [0]
    while cuts[-1] < len(longest):
        start = cuts[-1]
        rows = max(1, max_tokens // int(longest[start]))
        widest = np.maximum.accumulate(longest[start : start + rows])
        fitting = np.count_nonzero(widest * np.arange(1, len(widest) + 1) <= max_tokens)
        cuts.append(start + max(1, int(fitting)))
    return cuts


class BatchLoader(DataLoader[Any]):
    """Batches as tensors, and where in the epoch they stand: Lightning keeps that in its checkpoints.

    Workers may fetch ahead; what counts is what was handed out. The loader draws no numbers from torch's generator, so
    that making one anew in the middle of an epoch changes nothing.
    """

    def __init__(
        self, examples: Any, batches: TokenBatches, *, collate_fn: Callable[[Any], Any] = collate, **options: Any
    ) -> None:
        super().__init__(examples, batch_sampler=batches, collate_fn=collate_fn, generator=torch.Generator(), **options)
        self._batches, self._done = batches, 0

    # The type of an iterator of torch's own is promised by DataLoader, and needed by nobody.
    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        # As a generator, this begins with the first batch: Lightning says which epoch it is after it has asked for one.
        self._done = self._batches.start
        with _one_thread_for_tokenizers():
            batches = super().__iter__()
        for batch in batches:
            self._done += 1
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Where the epoch stands."""
        return self._batches.state_dict(batches_done=self._done)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next pass goes on from there."""
        self._batches.load_state_dict(state)


@contextmanager
def _one_thread_for_tokenizers() -> Iterator[None]:
    """For workers that are forked off meanwhile: the threads of the tokenizers stay behind, and would be waited for."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before


class TextPairs:
    """Pairs that are encoded when they are asked for, so that BPE dropout differs in every epoch.

    The dropout is not reproducible (see Tokenizer.encode). `lengths` are those without dropout, which makes more
    pieces: with it, max_tokens of TokenBatches is an aim and not a bound.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        dropout: float = 0.0,
    ) -> None:
        for place, pair in enumerate(pairs):
            if not all(side and not side.isspace() for side in pair):
                raise DataError(f"Pair {place} has an empty side: {pair}. Leave such pairs out.")
        self._pairs = pairs
        self._tokenizers = (source_tokenizer, target_tokenizer)
        for tokenizer in self._tokenizers:
            tokenizer.encode("", dropout=dropout)  # so that a wrong dropout is told here, not in a worker
        self._dropout = dropout

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: SupportsIndex) -> tuple[list[int], list[int]]:
        return self.__getitems__([operator.index(index)])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        """Several at once: a torch DataLoader asks for a batch in this way."""
        return self._encode([self._pairs[index] for index in indices], self._dropout)

    @cached_property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """The number of ids of source and target, for each pair, without dropout."""
        encoded = self._encode(self._pairs, 0.0)
        return np.array([(len(source), len(target)) for source, target in encoded], dtype=np.int64).reshape(-1, 2)

    def _encode(self, pairs: Sequence[tuple[str, str]], dropout: float) -> list[tuple[list[int], list[int]]]:
        encoded = (
            tokenizer.encode_batch([pair[side] for pair in pairs], dropout=dropout)
            for side, tokenizer in enumerate(self._tokenizers)
        )
        return list(zip(*encoded, strict=True))


class DroppingCorpus:
    """A corpus whose sentences are cut anew whenever they are asked for, with BPE dropout.

    The text is what the ids decode to, so that the store is all that is needed. A sentence with something unknown comes
    as it is stored: its ids no longer tell what was there. Otherwise as TextPairs: the dropout is not reproducible, and
    `lengths` are those without it.
    """

    def __init__(
        self, corpus: Corpus, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, *, dropout: float
    ) -> None:
        self._corpus, self._dropout = corpus, dropout
        self._tokenizers = (source_tokenizer, target_tokenizer)
        for tokenizer in self._tokenizers:
            tokenizer.encode("", dropout=dropout)  # so that a wrong dropout is told here, not in a worker
        self.report = corpus.report

    def __len__(self) -> int:
        return len(self._corpus)

    def __getitem__(self, index: SupportsIndex) -> tuple[list[int], list[int]]:
        return self.__getitems__([operator.index(index)])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        """Several at once: a torch DataLoader asks for a batch in this way."""
        sides = zip(*(self._corpus[index] for index in indices), strict=True)
        cut = [self._cut(side, tokenizer) for side, tokenizer in zip(sides, self._tokenizers, strict=True)]
        return list(zip(*cut, strict=True))

    @property
    def lengths(self) -> Int[np.ndarray, "n 2"]:
        """The number of ids of source and target, for each pair, without dropout."""
        return self._corpus.lengths

    def _cut(self, side: Sequence[np.ndarray], tokenizer: Tokenizer) -> list[list[int]]:
        stored: list[list[int]] = [ids.tolist() for ids in side]
        texts = ["" if UNKNOWN in ids else tokenizer.decode(ids) for ids in stored]
        return [
            new or ids for new, ids in zip(tokenizer.encode_batch(texts, dropout=self._dropout), stored, strict=True)
        ]
