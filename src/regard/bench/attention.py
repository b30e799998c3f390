"""Attention side by side: the formula as it is written, torch's own, and regard's."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from regard.attention import align, score
from regard.attention.align import Align
from regard.attention.attend import Attention, attend
from regard.attention.interfaces import Score
from regard.bench.contest import Contest, device
from regard.kernels.additive import additive_logits

ON_CPU = [(4, 500, 500, 256), (8, 64, 64, 256)]
ON_GPU = [(64, 64, 64, 1024), (8, 1024, 1024, 512)]
READS = [(16, 64, 256, 256), (4, 16, 4096, 256)]


def contests(*, compiled: bool = False) -> list[Contest]:
    """Additive attention against its formula, products against torch, a window against everything, one against all."""
    where = device()
    sizes = ON_GPU if where.type == "cuda" else ON_CPU
    rows = [_scores(size, where, compiled=compiled) for size in sizes]
    rows += [_additive(size, where, both=both, compiled=compiled) for size in sizes for both in (False, True)]
    rows += [_product(name, size, where) for name in ("dot", "scaled_dot", "general", "cosine") for size in sizes]
    asked = [(4, 1), (4, 256), *([(16, 1024), (4, 16_384)] if where.type == "cuda" else [])]
    windows = [_window(where, *size) for size in asked]
    return [*rows, *windows, *(_hard(where, size) for size in READS)]


def _tensors(size: tuple[int, int, int, int], where: torch.device) -> list[Tensor]:
    batch, queries, keys, dim = size
    torch.manual_seed(0)
    shapes = [(batch, queries, dim), (batch, keys, dim), (batch, keys, dim)]
    return [torch.randn(shape, device=where, requires_grad=True) for shape in shapes]


def _both(run: Callable[[], Tensor], inputs: list[Tensor]) -> Callable[[], object]:
    return lambda: torch.autograd.grad(run().sum(), inputs)


def _inference(run: Callable[[], Tensor]) -> Callable[[], object]:
    def inside() -> Tensor:
        with torch.no_grad():
            return run()

    return inside


def _additive(size: tuple[int, int, int, int], where: torch.device, *, both: bool, compiled: bool) -> Contest:
    query, key, values = _tensors(size, where)
    additive = score.Additive(size[3], size[3], size[3]).to(where)
    with torch.no_grad():
        query.copy_(additive.project_query(query))
        key.copy_(additive.project_key(key))

    def plain() -> Tensor:
        logits = torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)) @ additive.direction
        return logits.softmax(-1) @ values

    projected = _Projected(additive)

    def ours() -> Tensor:
        return attend(query, key, values, score=projected).context

    rivals = {"formula": plain} | ({"torch.compile": torch.compile(plain)} if compiled else {}) | {"regard": ours}
    inputs = [query, key, values, additive.direction]
    name = f"additive {'both passes' if both else 'forward'}, b q k d = {' '.join(map(str, size))}"
    return Contest(name, {who: _both(run, inputs) if both else _inference(run) for who, run in rivals.items()})


def _scores(size: tuple[int, int, int, int], where: torch.device, *, compiled: bool) -> Contest:
    query, key, _ = _tensors(size, where)
    direction = torch.randn(size[3], device=where) / size[3] ** 0.5

    def plain() -> Tensor:
        return torch.tanh(query.unsqueeze(2) + key.unsqueeze(1)).matmul(direction)

    rivals: dict[str, Callable[[], Tensor]] = {"formula": plain} | (
        {"torch.compile": torch.compile(plain)} if compiled else {}
    )
    rivals["regard"] = lambda: additive_logits(query, key, direction)
    name = f"additive scores alone, forward, b q k d = {' '.join(map(str, size))}"
    return Contest(name, {who: _inference(run) for who, run in rivals.items()})


class _Projected(score.TanhSum):
    """The additive score of queries and keys that are projected already, so that only the attention is timed."""

    def __init__(self, additive: score.Additive) -> None:
        size = len(additive.direction)
        super().__init__(size, size, size)
        self.direction = additive.direction


def _product(name: str, size: tuple[int, int, int, int], where: torch.device) -> Contest:
    query, key, values = _tensors(size, where)
    scored: Score = score.General(size[3], size[3]).to(where) if name == "general" else score.SCORES[name]()

    def theirs() -> Tensor:
        asked, kept = scored.project_query(query), scored.project_key(key)
        factor = scored.scale(size[3])  # type: ignore[operator]
        return functional.scaled_dot_product_attention(asked[:, None], kept[:, None], values[:, None], scale=factor)

    def ours() -> Tensor:
        return attend(query, key, values, score=scored).context

    rivals = {"torch": _both(theirs, [query, key, values]), "regard": _both(ours, [query, key, values])}
    return Contest(f"{name} both passes, b q k d = {' '.join(map(str, size))}", rivals)


def _window(where: torch.device, batch: int, queries: int) -> Contest:
    keys = 16_384
    query, states, _ = _tensors((batch, queries, keys, 128), where)
    rivals = {}
    for name, alignment in (
        ("global", align.softmax),
        ("local-p, 10 to each side", align.LocalPredictive(128, window=10)),
    ):
        attention = Attention(score.General(128, 128), alignment).to(where)
        memory = attention.remember(states)
        rivals[name] = _asking(attention, query, memory)
    return Contest(f"{batch} x {queries} {'query' if queries == 1 else 'queries'}, {keys} keys", rivals)


def _hard(where: torch.device, size: tuple[int, int, int, int]) -> Contest:
    query, states, _ = _tensors(size, where)
    rivals = {}
    kinds: list[tuple[str, Align]] = [("soft", align.softmax), ("hard", align.Hard())]
    for name, alignment in kinds:
        attention = Attention(score.Additive(size[3], size[3], size[3]), alignment).to(where).eval()
        rivals[name] = _asking(attention, query, attention.remember(states))
    return Contest(f"reading one key or all, b q k d = {' '.join(map(str, size))}", rivals)


def _asking(attention: Attention, query: Tensor, memory: object) -> Callable[[], object]:
    return _inference(lambda: attention(query, memory).context)
