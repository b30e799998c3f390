"""Batches of bounded cost, in an order that a seed decides and that can be resumed, and padding."""

import gc
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import islice, pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import DataLoader, Sampler

from regard.data.tokenizer import PAD
from regard.errors import DataError, OptionError, ShapeError

AnyMovable = TypeVar("AnyMovable", bound="Movable")
ON_CPU = {"device": "cpu"}
"""The metadata of a field of a Movable that stays on the CPU, such as lengths.

Reading them from a GPU would wait for all pending work.
"""


@dataclass(frozen=True, eq=False)
class Movable:
    """A dataclass of tensors that move together: a batch, or a data set in memory.

    Its fields may also be tuples of tensors, other Movables, or anything else, which is kept.
    """

    def to(self: AnyMovable, device: torch.device | str, *, non_blocking: bool = True) -> AnyMovable:
        """Move all tensors to a device; `non_blocking` has an effect only on the way to a GPU."""
        non_blocking = non_blocking and torch.device(device).type == "cuda"
        return self._with_each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self: AnyMovable) -> AnyMovable:
        """Copy all tensors to page-locked memory, from where they can be moved to a GPU while it computes."""
        return self._with_each(Tensor.pin_memory, also_on_cpu=True)

    def _with_each(self: AnyMovable, change: Callable[[Tensor], Tensor], *, also_on_cpu: bool = False) -> AnyMovable:
        def changed(value: Any) -> Any:
            if isinstance(value, Tensor):
                return change(value)
            if isinstance(value, Movable):
                return value._with_each(change, also_on_cpu=also_on_cpu)
            return tuple(map(changed, value)) if isinstance(value, tuple) else value

        moved = [each.name for each in fields(self) if also_on_cpu or each.metadata != ON_CPU]
        return replace(self, **{name: changed(getattr(self, name)) for name in moved})


class CostBatches(Sampler[list[Any]]):
    """Batches of indices whose padded size is bounded, each example once per epoch: a batch_sampler of a DataLoader.

    An example has one or more sizes, such as the padded lengths of source and target, or 1 for images of equal size.
    The cost of a batch is its number of examples times the largest size of any of them, and is at most `max_cost`.
    An example that costs more than that by itself is a batch of its own.

    With `bucket`, examples are sorted by size, the last column first, so that those of a batch have similar sizes and
    little is spent on padding. Without it, examples of all sizes are mixed, and each counts as the largest.
    With `shuffle`, examples of equal sizes change places in each epoch, and so do the batches. The seed and the epoch
    decide the order; the number of batches is the same in every epoch. Call `set_epoch` before each epoch.
    With `with_epoch`, a batch has pairs (epoch, index), for examples that are drawn anew in each epoch.

    Several processes share the batches, with nothing repeated and nothing dropped: after `divide`, each takes a part of
    every batch, and after `deal`, each takes some of the batches.
    """

    def __init__(
        self,
        sizes: Int[np.ndarray, "n k"],
        *,
        max_cost: int,
        shuffle: bool,
        seed: int,
        bucket: bool = True,
        with_epoch: bool = False,
    ) -> None:
        if max_cost < 1:
            raise OptionError(f"max_cost must be 1 or more; got {max_cost}.")
        sizes = np.ascontiguousarray(sizes, dtype=np.int64)
        if sizes.ndim != 2 or not sizes.shape[1]:
            raise ShapeError(f"sizes must be (n, k), with k sizes for each of n examples; got {sizes.shape}.")
        if not len(sizes):
            raise DataError("There are no examples to make batches of.")
        if not bucket:
            sizes = np.full_like(sizes, sizes.max(0))
        self._keys, self._with_epoch = _sort_keys(sizes), with_epoch
        self._shuffle, self._seed = shuffle, seed
        costs = sizes.max(1)[np.lexsort(self._keys)]
        # Only examples of equal sizes change places, so the boundaries hold for every epoch.
        self._bounds = _boundaries(costs, max_cost)
        self._fingerprint = hashlib.sha256(f"{max_cost} {shuffle}".encode() + sizes.tobytes()).hexdigest()
        self._epoch = self._position = self._resume_at = 0
        self._part, self._deal = slice(None), slice(None)
        self._empty: set[int] = set()

    def divide(self, rank: int, num_ranks: int) -> None:
        """From now on, give only part `rank` of `num_ranks` of every batch: examples rank, rank + num_ranks, ...

        The order of the batches and their number stay the same, so that a training can be resumed by another number of
        processes. A batch with fewer examples than ranks has no part for some; these are given its first example as
        a filler (see `is_filler`), so that all ranks have the same number of batches.
        """
        _check_rank(rank, num_ranks)
        self._part = slice(rank, None, num_ranks)

    def deal(self, rank: int, num_ranks: int) -> None:
        """From now on, give only batches rank, rank + num_ranks, ... of the common order.

        All ranks have the same number of batches. To make this possible, the batches with the most examples are split
        in two until their number is a multiple of `num_ranks`. Where there are too few examples to split, the smallest
        batches are merged instead, and only these may cost more than `max_cost`. Where there are fewer examples than
        ranks, each rank is given all of them.
        """
        _check_rank(rank, num_ranks)
        if self.num_examples >= num_ranks:
            self._bounds = _share(self._bounds, num_ranks)
            self._deal = slice(rank, None, num_ranks)

    def is_filler(self, number: int) -> bool:
        """Whether a batch of the current pass has no example of this rank, and gives one of another rank instead."""
        return number in self._empty

    @property
    def num_examples(self) -> int:
        """How many examples there are."""
        return len(self._keys[0])

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch. A loaded position is kept if it is of the same epoch."""
        if epoch != self._epoch:
            self._epoch, self._position, self._resume_at = epoch, 0, 0

    def __len__(self) -> int:
        return len(range(len(self._bounds) - 1)[self._deal])

    def __iter__(self) -> Iterator[list[Any]]:
        start, self._resume_at = self._resume_at, 0
        self._position = start
        return self._run(self._order(self._epoch), start)

    def batch(self, epoch: int, number: int) -> list[int]:
        """The indices in a batch, counted from 0 in the order of an epoch."""
        return next(islice(self._order(epoch), number, None))

    @property
    def start(self) -> int:
        """Index of the batch that the next pass starts with: 0, or the position of a loaded state."""
        return self._resume_at

    def state_dict(self, batches_done: int | None = None) -> dict[str, Any]:
        """Return the position in the epoch, which is the same on every rank.

        A loader with workers fetches ahead: it passes the number of batches that it has handed out.
        """
        position = self._position if batches_done is None else batches_done
        return {"seed": self._seed, "epoch": self._epoch, "position": position, "fingerprint": self._fingerprint}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a saved position in the next pass; later passes start from the first batch again."""
        if state["fingerprint"] != self._fingerprint or state["seed"] != self._seed:
            raise DataError(
                "This state belongs to other batches: the examples, max_cost, shuffle or seed have changed "
                f"(the seed was {state['seed']} and is {self._seed}). Resume with the same settings, or start again."
            )
        if not 0 <= state["position"] <= len(self):
            raise DataError(f"This state is at batch {state['position']}, but there are {len(self)}.")
        self._epoch = state["epoch"]
        self._position = self._resume_at = state["position"]

    def _run(self, batches: Iterator[list[int]], start: int) -> Iterator[list[Any]]:
        epoch = self._epoch
        self._empty.clear()
        for number, whole in enumerate(batches):
            if number >= start:
                self._position = number + 1
                if not (batch := whole[self._part]):
                    batch = whole[:1]
                    self._empty.add(number)
                yield [(epoch, index) for index in batch] if self._with_epoch else batch

    def _order(self, epoch: int) -> Iterator[list[int]]:
        random = np.random.default_rng((self._seed, epoch))
        mixed = random.permutation(self.num_examples) if self._shuffle else np.arange(self.num_examples)
        examples = mixed[np.lexsort([key[mixed] for key in self._keys])]
        num_batches = len(self._bounds) - 1
        batches = random.permutation(num_batches) if self._shuffle else np.arange(num_batches)
        mine = batches[self._deal]
        return (examples[self._bounds[batch] : self._bounds[batch + 1]].tolist() for batch in mine)


class BatchLoader(DataLoader[Any]):
    """A DataLoader over CostBatches that knows its position in the epoch, which checkpoints of a training have.

    Workers may fetch ahead: the position counts the batches that were handed out. The loader draws no numbers from
    torch's default generator, so that creating one in the middle of an epoch changes nothing. Processes that train
    together divide each batch, unless `divisible` is False: each of them then takes all batches as they are.
    """

    def __init__(
        self,
        examples: Any,
        batches: CostBatches,
        *,
        collate_fn: Callable[[Any], Any],
        divisible: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(
            examples,
            batch_sampler=batches,
            collate_fn=collate_fn,
            generator=torch.Generator(),
            worker_init_fn=_keep_objects,
            **options,
        )
        self._batches, self._divisible = batches, divisible
        self.done = 0
        """How many batches of the epoch have been handed out."""

    @property
    def num_examples(self) -> int:
        """How many examples an epoch has."""
        return self._batches.num_examples

    def divide(self, rank: int, num_ranks: int) -> None:
        """Give only the part of each batch that this process learns from; see `CostBatches.divide`."""
        if self._divisible:
            self._batches.divide(rank, num_ranks)

    def split(self, num_parts: int) -> None:
        """Give each batch as a list of parts, with examples part, part + num_parts, ... and whether it is a filler.

        A batch with fewer examples than parts has fillers, which repeat its first example and are not learned from.
        """
        if not self._divisible:
            raise OptionError(f"These batches cannot be divided: leave out train.accumulate; got {num_parts}.")
        whole = self.collate_fn

        def parts(examples: list[Any]) -> list[tuple[Any, bool]]:
            divided = (examples[part::num_parts] for part in range(num_parts))
            return [(whole(part or examples[:1]), not part) for part in divided]

        self.collate_fn = parts

    def deal(self, rank: int, num_ranks: int) -> None:
        """Give only some of the batches; see `CostBatches.deal`."""
        if self._divisible:
            self._batches.deal(rank, num_ranks)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch; see `CostBatches.set_epoch`."""
        self._batches.set_epoch(epoch)

    def examples(self, epoch: int, number: int) -> list[int]:
        """The indices of the examples in a batch, counted from 0 in the order of an epoch."""
        return self._batches.batch(epoch, number)

    @property
    def is_at_end(self) -> bool:
        """Whether the last batch of the epoch has been handed out."""
        return self.done == len(self)

    @property
    def is_filler(self) -> bool:
        """Whether the batch that was handed out last belongs to another process, and must not be learned from."""
        return self._batches.is_filler(self.done - 1)

    # DataLoader promises its own type of iterator, which no caller needs.
    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self.done = self._batches.start
        with _single_threaded_tokenizers() if self.num_workers else nullcontext():
            batches = super().__iter__()
        for batch in batches:
            self.done += 1
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epoch."""
        return self._batches.state_dict(batches_done=self.done)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a saved position in the next pass."""
        self._batches.load_state_dict(state)


def _sort_keys(sizes: Int[np.ndarray, "n k"]) -> list[Int[np.ndarray, "n"]]:
    """Keys for lexsort: the last column decides, then the one before it, and so on.

    Each column alternates between ascending and descending as the one after it grows, so that neighbours stay similar
    where one group of equal sizes ends and the next begins.
    """
    columns = list(sizes.T)
    snake = [np.where(later % 2, -column, column) for column, later in pairwise(columns)]
    return [*snake, columns[-1]]


def _boundaries(costs: Int[np.ndarray, "n"], max_cost: int) -> list[int]:
    """Where batches begin and end, if each takes as many examples as it may."""
    bounds = [0]
    while bounds[-1] < len(costs):
        start = bounds[-1]
        rows = max(1, max_cost // max(1, int(costs[start])))
        largest = np.maximum.accumulate(costs[start : start + rows])
        fitting = np.count_nonzero(largest * np.arange(1, len(largest) + 1) <= max_cost)
        bounds.append(start + max(1, int(fitting)))
    return bounds


def _check_rank(rank: int, num_ranks: int) -> None:
    if not 0 <= rank < num_ranks:
        raise OptionError(f"rank must be from 0 to num_ranks - 1; got rank={rank}, num_ranks={num_ranks}.")


def _share(bounds: list[int], num_ranks: int) -> list[int]:
    """Split large batches, or else merge small ones, until their number is a multiple of `num_ranks`."""
    num_examples, excess = bounds[-1], (len(bounds) - 1) % num_ranks
    can_split = len(bounds) - 1 + num_ranks - excess <= num_examples
    while (len(bounds) - 1) % num_ranks:
        if can_split:
            largest = int(np.argmax(np.diff(bounds)))
            bounds = [*bounds[: largest + 1], (bounds[largest] + bounds[largest + 1]) // 2, *bounds[largest + 1 :]]
        else:
            smallest = int(np.argmin(np.array(bounds[2:]) - np.array(bounds[:-2])))
            bounds = [*bounds[: smallest + 1], *bounds[smallest + 2 :]]
    return bounds


def _keep_objects(worker: int) -> None:
    """Let a forked worker free no object of the process that it came from, such as memory of a GPU."""
    gc.freeze()


@contextmanager
def _single_threaded_tokenizers() -> Iterator[None]:
    """Turn off threads of the tokenizers library while workers are forked: a fork would wait for them forever."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before


def round_up(size: Any, multiple: int) -> Any:
    """The next multiple of a number, for a size or an array of sizes."""
    return -(-size // multiple) * multiple


def pad(
    rows: Sequence[Any],
    *,
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    value: int = PAD,
    multiple: int = 1,
) -> tuple[Int[Tensor, "b n"], Int[Tensor, "b"]]:
    """Pad rows of ids (lists, arrays or tensors) on the right, and return them with their lengths.

    `before` and `after` are ids placed in front of and behind every row, such as START and END; the lengths count
    them. Behind `before`, the padded rows have a multiple of `multiple` ids. Both tensors are int64 and on the CPU.
    """
    if not len(rows):
        raise DataError("There are no rows to pad: a batch needs at least one.")
    lengths = [len(before) + len(row) + len(after) for row in rows]
    width = len(before) + round_up(max(lengths) - len(before), multiple)
    padded = np.full((len(rows), width), value, dtype=np.int64)
    for line, row, length in zip(padded, rows, lengths, strict=True):
        line[: len(before)] = before
        line[len(before) : length - len(after)] = row
        line[length - len(after) : length] = after
    return torch.from_numpy(padded), torch.tensor(lengths)
