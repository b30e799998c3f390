"""The contract of a system: a predictor that is a network of torch, and can be saved and loaded."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from typing_extensions import TypeVar

from regard.arguments import checked
from regard.config import Checked, custom_parts
from regard.errors import ModelError, OptionError
from regard.kernels.threads import threads_for
from regard.layers.layout import by_columns
from regard.systems.folder import exported_table, find_model, read_model, write_config, write_model
from regard.systems.parameters import Store
from regard.systems.predictor import Chosen, Input, Output, Predictor

Loaded = TypeVar("Loaded", bound="System")


class System(Predictor[Input, Output, Chosen], nn.Module):
    """A model that can be saved, loaded and asked: what an input is, the class of a result, the options of its verb.

    Subclasses declare their kind, config and assets, and define `predict_batch`; saving, loading and predicting are
    inherited. Predicting changes nothing about the model, so that many threads may share one loaded model.
    """

    def __init__(self, config: Checked) -> None:
        super().__init__()
        self.config = config
        self.metrics = {}
        self.card = ""

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    def answer(self, inputs: Sequence[Input], options: Chosen) -> list[Output]:
        """The results for any number of inputs, in order, with options that are checked already."""
        self.check_mode()
        with torch.inference_mode():
            return super().answer(inputs, options)

    def check_mode(self) -> None:
        """Refuse a model in training mode, in which dropout changes its results."""
        if self.training:
            raise OptionError(
                f"This {type(self).__name__} is in training mode, in which dropout changes its results. "
                "Call model.eval() first."
            )

    @contextmanager
    def computing(self, rows: int) -> Iterator[None]:
        """Compute a batch in this block, with as many CPU threads as suit so many rows."""
        with threads_for(rows * self.parameter_uses * sum(map(torch.numel, self.parameters()))):
            yield

    @checked
    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        metrics: Mapping[str, Any] | None = None,
        card: str | None = None,
        store: Store = "float32",
    ) -> None:
        """Write the model as a folder: config.json, model.safetensors, assets, metrics.json, MODEL_CARD.md.

        `store` is the precision on disk: float16 halves the size, int8 quarters it. Without `metrics` and `card`, those
        that the model was loaded with are kept. A folder that regard did not write is never replaced.
        """
        write_model(
            folder,
            self,
            kind=self.kind,
            config=self.config,
            assets=self._assets(),
            metrics=self.metrics if metrics is None else metrics,
            card=self.card if card is None else card,
            store=store,
        )

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        branch: str | None = None,
        token: str | None = None,
        commit_message: str = "Push a model of regard",
    ) -> str:
        """Upload the model to a hub of Hugging Face, as user/name; returns the address of the commit.

        Its card becomes README.md, with a header that says library, task and scores (`model-index`). The repository is
        created if it does not exist, `private` if that is asked for. The token is that of `hf auth login`, unless one
        is given.
        """
        from regard.systems.hub import push

        return push(self, repo_id, private=private, branch=branch, token=token, commit_message=commit_message)

    @classmethod
    def from_pretrained(
        cls: type[Loaded],
        repo_id: str,
        *,
        revision: str | None = None,
        token: str | None = None,
        device: str | torch.device | None = None,
        trust: bool = False,
    ) -> Loaded:
        """Load a model from a hub of Hugging Face, as user/name, which is downloaded once for each revision.

        A shipped model and a folder are loaded as by `load`, which says more about `device` and `trust`.
        """
        from regard.systems.hub import pull

        is_here = Path(repo_id).is_dir() or "/" not in repo_id
        folder = repo_id if is_here else pull(repo_id, revision=revision, token=token)
        return cls.load(folder, device=device, trust=trust)

    @property
    def custom_parts(self) -> dict[str, str]:
        """The custom code of the model, by its field or asset: what `load` asks for `trust` to run."""
        paths = {name: getattr(asset, "import_path", "") for name, asset in self._assets().items()}
        return custom_parts(self.config) | {name: path for name, path in paths.items() if path}

    def save_config(self, folder: Path) -> None:
        """Write config.json and the assets alone, beside checkpoints, which hold the parameters."""
        write_config(folder, kind=self.kind, config=self.config, assets=self._assets())

    def _assets(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.assets}

    @classmethod
    @checked
    def load(
        cls: type[Loaded],
        name: str | os.PathLike[str],
        *,
        device: str | torch.device | None = None,
        trust: bool = False,
    ) -> Loaded:
        """Load a shipped model by its name, or a model from its folder, from a run or from a checkpoint.

        The model is in evaluation mode. It goes to the GPU when there is one, unless `device` says otherwise. A model
        with custom parts (`package.module:Name`) is loaded only with `trust=True`, because loading it runs their code.
        """
        chosen, path = choose_device(device), find_model(name)
        if exported_table(path) is not None:
            raise ModelError(f"{path} is an exported model, which has graphs in place of parameters: use regard.load.")
        saved = read_model(path, cls.kind, cls.Config, cls.assets, trust=trust)
        with saved.building():
            model = cls(saved.config, **saved.assets)
        saved.fill(model)
        model.metrics, model.card = saved.metrics, saved.card
        return by_columns(model.to(chosen).eval())


def choose_device(device: str | torch.device | None = None) -> torch.device:
    """The given device, or the GPU when there is one, or else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"device must be such as 'cpu', 'cuda' or 'cuda:1'; got {device!r}.") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise OptionError(f"device={str(device)!r} needs a CUDA GPU, and torch finds none here. Use device='cpu'.")
    if chosen.type == "meta":
        raise OptionError("device='meta' holds no numbers, so that nothing can be answered there. Use device='cpu'.")
    try:
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].split(". ")[0]
        raise OptionError(f"device={str(device)!r} cannot be used here ({reason}). Use device='cpu'.") from error
    return chosen
