"""The command that exports any model."""

from pathlib import Path
from typing import Literal

from regard.cli.io import Flag, print_line


def export(
    model: str,
    *,
    out: Path,
    precision: Literal["int8", "float32"] = "int8",
    overwrite: Flag = False,
    trust: Flag = False,
) -> None:
    """Export a model to ONNX, to run it without torch: on servers, on phones, in browsers.

    The folder has the graphs in onnx/, config.json, generation_config.json, the tokenizers or labels, the scores and
    the model card. Attention is among the outputs. Needs the extra onnx: pip install 'regard[onnx]'.

    Parameters
    ----------
    model
        A shipped model (`regard models` lists them) or a model folder.
    out
        The folder to write.
    precision
        int8: a quarter of the size, parameters in 8 bits, only the output layer computes in 8 bits. float32: all
        numbers as they are.
    overwrite
        Replace an exported model in this folder.
    trust
        Allow models that import custom code (package.module:Name); what has no ONNX graph is still refused.
    """
    from regard.errors import OptionError
    from regard.systems.export import export as run

    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise OptionError(f"{out} exists. Add --overwrite to replace an exported model there.")
    written = run(model, out, precision=precision, trust=trust)
    size = sum(path.stat().st_size for path in written.rglob("*") if path.is_file()) / 2**20
    print_line(f"{written}: {size:.1f} MiB")
