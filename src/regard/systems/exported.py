"""Exported models: the verbs of systems whose networks are graphs, in a folder that `regard export` wrote."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from regard.errors import ModelError, OptionError
from regard.runtime.session import Session
from regard.systems.folder import CONFIG, check_sums, exported_table, find_model, read_model
from regard.systems.predictor import Chosen, Input, Output, Predictor

FORMAT = 1
"""The version of the format of exported folders."""
AnyExported = TypeVar("AnyExported", bound="ExportedSystem")


class ExportedSystem(Predictor[Input, Output, Chosen]):
    """A predictor whose network is one or more graphs in ONNX Runtime, on the CPU.

    Subclasses define what their predictor leaves open, with the graphs by role in `graphs`. Assets become attributes.
    """

    graphs: Mapping[str, Session]

    @classmethod
    def load(
        cls: type[AnyExported], name: str | os.PathLike[str], *, device: Any = None, trust: bool = False
    ) -> AnyExported:
        """Load an exported model from its folder; it runs on the CPU."""
        if str(device or "cpu") != "cpu":
            raise OptionError(f"An exported model runs on the CPU; got device {str(device)!r}. Load the model itself.")
        folder = find_model(name)
        saved, table = read_model(folder, cls.kind, cls.Config, cls.assets, trust=trust), exported_table(folder) or {}
        graphs, sums = table.get("graphs"), table.get("sha256")
        if table.get("format") != FORMAT or not isinstance(graphs, dict) or not isinstance(sums, dict):
            raise ModelError(
                f"{folder / CONFIG} does not describe graphs of format {FORMAT}, which this version of regard reads."
            )
        if not set(graphs.values()) <= set(sums) or not all(map(_is_inside, sums)):
            raise ModelError(f"{folder / CONFIG} must name its graphs in sha256, as files of a folder in this one.")
        check_sums(folder, sums)
        model = cls()
        model.config, model.metrics, model.card = saved.config, saved.metrics, saved.card
        vars(model).update(saved.assets)
        model.graphs = {role: Session(folder / file) for role, file in graphs.items()}
        return model


def _is_inside(file: Any) -> bool:
    """Whether a file is named as FOLDER/NAME, without a way out of it."""
    parts = file.split("/") if isinstance(file, str) else []
    return len(parts) == 2 and not any(part.startswith(".") or "\\" in part for part in parts)
