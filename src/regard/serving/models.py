"""The models of a server: loaded when they are first asked for, once, and unloaded when memory runs short."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from regard.errors import ModelError, OptionError, RegardError
from regard.serving.errors import RefusedError
from regard.systems import registry
from regard.systems.endpoint import NOT_SENT
from regard.systems.folder import NO_CARD, find_model, kind_of
from regard.systems.pretrained import PRETRAINED, card_summary, load, pretrained_models
from regard.systems.system import System

logger = logging.getLogger("regard.serving")


@dataclass(frozen=True)
class Served:
    """A model that can be asked for."""

    name: str
    verb: str
    """What it does: the name of its system, and the last part of its route."""
    summary: str
    mebibytes: float
    headline: str
    """The scores that say most about it."""
    scale: str
    """What these scores mean, where they do not explain themselves."""
    measured_on: str
    """What they were measured on, where that is known."""
    folder: Path = field(metadata=NOT_SENT)

    @classmethod
    def of(
        cls, folder: Path, name: str, verb: str, summary: str, metrics: Mapping[str, Any], mebibytes: float
    ) -> "Served":
        """A model in a folder, with its scores as in metrics.json."""
        declaration = registry.entry(verb).declaration
        about = declaration.scores(metrics), declaration.scale(metrics), declaration.test_of(metrics)
        return cls(name, verb, summary, round(mebibytes, 1), *about, folder=folder)


class Models:
    """Models by name: those that come with regard, and folders by their last part."""

    def __init__(self, folders: Sequence[str] = (), *, device: str | None = None, memory: int = 2**31) -> None:
        self._device, self._memory = device, memory
        self._served = {each.name: each for each in _shipped()}
        given: dict[str, str] = {}
        for folder in folders:
            saved = _saved(folder)
            if given.setdefault(saved.name, folder) != folder:
                raise OptionError(
                    f"{given[saved.name]} and {folder} would both be served as {saved.name!r}, the name of the "
                    "folder. Rename one of them, or serve the folder of its run."
                )
            self._served[saved.name] = saved
        self._kept: dict[str, System] = {}
        self._alive: WeakValueDictionary[str, System] = WeakValueDictionary()
        """Also those that were unloaded while requests waited for them: they are found again, never loaded twice."""
        self._used: dict[str, float] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def served(self) -> list[Served]:
        """All models that can be asked for."""
        return list(self._served.values())

    @property
    def loaded(self) -> dict[str, int]:
        """The models in memory, with the bytes of their parameters."""
        return {name: _size(model) for name, model in list(self._alive.items())}

    def find(self, name: str, verb: str) -> Served:
        """The model of this name and verb; others are refused, so that no request can name a path."""
        found = self._served.get(name)
        if found is None or found.verb != verb:
            names = [each.name for each in self.served if each.verb == verb]
            raise RefusedError(404, f"There is no model {name!r} for this; choose from {', '.join(names) or 'none'}.")
        return found

    async def get(self, served: Served) -> Any:
        """The model, loaded in a thread of its own if it is not there yet."""
        async with self._locks.setdefault(served.name, asyncio.Lock()):
            model = self._alive.get(served.name)
            if model is None:
                model = await asyncio.to_thread(self._load, served)
            self._kept[served.name] = self._alive[served.name] = model
        self._used[served.name] = time.monotonic()
        self._evict(keep=served.name)
        return model

    def _load(self, served: Served) -> System:
        try:
            model: System = load(served.folder, device=self._device)
        except (RegardError, OSError) as error:
            # The message names server paths, which must not reach clients.
            logger.exception("The model %s cannot be loaded", served.name)
            raise RefusedError(
                503, f"The model {served.name!r} cannot be loaded; the log of the server says why."
            ) from error
        logger.info("Loaded %s, %.0f MiB", served.name, _size(model) / 2**20)
        return model

    def _evict(self, keep: str) -> None:
        """Unload what was unused for longest until the rest fits; what requests wait for stays until they are done."""
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > self._memory:
            oldest = min((name for name in self._kept if name != keep), key=lambda name: self._used.get(name, 0.0))
            del self._kept[oldest]
            logger.info("Unloaded %s", oldest)


def _shipped() -> list[Served]:
    return [
        Served.of(PRETRAINED / each.name, each.name, each.kind, each.summary, each.metrics, each.mebibytes)
        for each in pretrained_models()
    ]


def _saved(folder: str) -> Served:
    found = find_model(folder)
    path = Path(folder).resolve()
    if not path.name:
        raise OptionError(f"A model is served under the name of its folder; {folder!r} has none.")
    if not found.is_dir():
        raise ModelError(f"{folder} holds no finished model; serve the folder of one.")
    model: System = load(found, device="cpu")  # what cannot be loaded is refused here, not when somebody asks for it
    size = sum(file.stat().st_size for file in found.iterdir() if file.is_file()) / 2**20
    numbers = {name: value for name, value in model.metrics.items() if isinstance(value, int | float)}
    summary = card_summary(model.card)
    return Served.of(found, path.name, kind_of(found), "" if summary == NO_CARD else summary, numbers, size)


def _size(model: System) -> int:
    return sum(each.numel() * each.element_size() for each in (*model.parameters(), *model.buffers()))
