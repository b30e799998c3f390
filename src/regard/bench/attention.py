"""Attention timed against its plain formula, against torch, and against attention to a window or to a single key."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from regard.attention import align, score
from regard.attention.align import Align
from regard.attention.attend import Attention, attend
from regard.attention.score import Score
from regard.bench.contest import Contest, device
from regard.kernels.additive import additive_logits

Size = tuple[int, int, int, int]
"""Batch, queries, keys and features."""
CPU_SIZES: list[Size] = [(4, 500, 500, 256), (8, 64, 64, 256)]
GPU_SIZES: list[Size] = [(64, 64, 64, 1024), (8, 1024, 1024, 512)]
HARD_SIZES: list[Size] = [(16, 64, 256, 256), (4, 16, 4096, 256)]
"""Sizes at which soft and hard attention are compared."""
WINDOW_KEYS, WINDOW_DIM = 16_384, 128
WINDOW_QUERIES, GPU_WINDOW_QUERIES = [(4, 1), (4, 256)], [(16, 1024), (4, 16_384)]
"""Batch and queries for which a window is compared with all keys; the second list only on a GPU."""


def contests(*, compiled: bool = False) -> list[Contest]:
    """Additive scores, products, windows and hard attention; `compiled` adds torch.compile of the additive formula."""
    where = device()
    on_gpu = where.type == "cuda"
    sizes = GPU_SIZES if on_gpu else CPU_SIZES
    additive = [_additive_logits(size, where, compiled=compiled) for size in sizes]
    additive += [_additive(size, where, backward=both, compiled=compiled) for size in sizes for both in (False, True)]
    products = [_product(name, size, where) for name in ("dot", "scaled_dot", "general", "cosine") for size in sizes]
    windows = [_window(where, *size) for size in [*WINDOW_QUERIES, *(GPU_WINDOW_QUERIES if on_gpu else [])]]
    return [*additive, *products, *windows, *(_hard(where, size) for size in HARD_SIZES)]


def _tensors(size: Size, where: torch.device) -> list[Tensor]:
    """Random queries, keys and values."""
    batch, queries, keys, dim = size
    torch.manual_seed(0)
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, dim)]
    return [torch.randn(shape, device=where, requires_grad=True) for shape in shapes]


def _with_backward(run: Callable[[], Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    return lambda: torch.autograd.grad(run().sum(), inputs)


def _without_gradients(run: Callable[[], Tensor]) -> Callable[[], object]:
    def inside() -> Tensor:
        with torch.no_grad():
            return run()

    return inside


def _additive(size: Size, where: torch.device, *, backward: bool, compiled: bool) -> Contest:
    query, key, values = _tensors(size, where)
    additive = score.Additive(size[3], size[3], size[3]).to(where)
    with torch.no_grad():
        query.copy_(additive.project_query(query))
        key.copy_(additive.project_key(key))

    def formula() -> Tensor:
        logits = torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)) @ additive.direction
        return logits.softmax(-1) @ values

    projected = _Projected(additive)

    def regard() -> Tensor:
        return attend(query, key, values, score=projected).context

    rivals = {"formula": formula}
    rivals |= {"torch.compile": torch.compile(formula)} if compiled else {}
    rivals |= {"regard": regard}
    inputs = [query, key, values, additive.direction]
    name = f"additive {'both passes' if backward else 'forward'}, {_written(size)}"
    runs = {
        rival: _with_backward(run, inputs) if backward else _without_gradients(run) for rival, run in rivals.items()
    }
    return Contest(name, runs)


def _additive_logits(size: Size, where: torch.device, *, compiled: bool) -> Contest:
    query, key, _ = _tensors(size, where)
    direction = torch.randn(size[3], device=where) / size[3] ** 0.5

    def formula() -> Tensor:
        return torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)).matmul(direction)

    rivals: dict[str, Callable[[], Tensor]] = {"formula": formula}
    rivals |= {"torch.compile": torch.compile(formula)} if compiled else {}
    rivals["regard"] = lambda: additive_logits(query, key, direction)
    name = f"additive scores alone, forward, {_written(size)}"
    return Contest(name, {rival: _without_gradients(run) for rival, run in rivals.items()})


class _Projected(score.TanhSum):
    """The additive score of queries and keys that are already projected, so that only the attention is timed."""

    def __init__(self, additive: score.Additive) -> None:
        size = len(additive.direction)
        super().__init__(size, size, size)
        self.direction = additive.direction


def _product(name: str, size: Size, where: torch.device) -> Contest:
    query, key, values = _tensors(size, where)
    product: Score = score.General(size[3], size[3]).to(where) if name == "general" else score.SCORES[name]()

    def sdpa() -> Tensor:
        queries, keys = product.project_query(query), product.project_key(key)
        factor = product.scale(size[3])  # type: ignore[operator]
        return functional.scaled_dot_product_attention(queries[:, None], keys[:, None], values[:, None], scale=factor)

    def regard() -> Tensor:
        return attend(query, key, values, score=product).context

    inputs = [query, key, values]
    rivals = {"torch": _with_backward(sdpa, inputs), "regard": _with_backward(regard, inputs)}
    return Contest(f"{name} both passes, {_written(size)}", rivals)


def _window(where: torch.device, batch: int, queries: int) -> Contest:
    query, states, _ = _tensors((batch, queries, WINDOW_KEYS, WINDOW_DIM), where)
    rivals = {}
    for name, alignment in (
        ("global", align.softmax),
        ("local-p, 10 to each side", align.LocalPredictive(WINDOW_DIM, window=10)),
    ):
        attention = Attention(score.General(WINDOW_DIM, WINDOW_DIM), alignment).to(where)
        rivals[name] = _attending(attention, query, attention.remember(states))
    return Contest(f"{batch} x {queries} {'query' if queries == 1 else 'queries'}, {WINDOW_KEYS} keys", rivals)


def _hard(where: torch.device, size: Size) -> Contest:
    query, states, _ = _tensors(size, where)
    rivals = {}
    alignments: list[tuple[str, Align]] = [("soft", align.softmax), ("hard", align.Hard())]
    for name, alignment in alignments:
        attention = Attention(score.Additive(size[3], size[3], size[3]), alignment).to(where).eval()
        rivals[name] = _attending(attention, query, attention.remember(states))
    return Contest(f"reading one key or all, {_written(size)}", rivals)


def _attending(attention: Attention, query: Tensor, memory: object) -> Callable[[], object]:
    return _without_gradients(lambda: attention(query, memory).context)


def _written(size: Size) -> str:
    return f"b q k d = {' '.join(map(str, size))}"
