"""The command that writes a static site on which models run in the browser."""

from pathlib import Path
from typing import Literal

from regard.cli.io import Flag, print_line
from regard.errors import OptionError, counted


def site(
    out: Path,
    *models: str,
    precision: Literal["int8", "float32"] = "int8",
    runtime: str = "",
    overwrite: Flag = False,
    trust: Flag = False,
) -> None:
    """Write a static site on which models run in the browser, without a server.

    Any static host can serve the folder; index.html also works when it is opened from a disk. Nothing that visitors
    enter leaves their computer. Models that translate, caption, recognize and classify can be shown, each with what it
    attends to. The runtime of the browser, onnxruntime-web, is downloaded once by npm. Needs the extra onnx:
    pip install 'regard[onnx]'.

    Parameters
    ----------
    out
        The folder to write.
    models
        Shipped models, model folders or exported models; without any, en-fr, scenes-hard, reviews-en and digits.
    precision
        int8: a quarter of the size. float32: all numbers as they are.
    runtime
        The folder dist of onnxruntime-web, instead of the download.
    overwrite
        Replace the site in this folder.
    trust
        Allow models that import custom code (package.module:Name); what has no ONNX graph is still refused.
    """
    from regard.site.build import build_site

    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise OptionError(f"{out} exists. Add --overwrite to replace a site there.")
    written = build_site(out, models, precision=precision, runtime=runtime, trust=trust)
    size = sum(path.stat().st_size for path in written.rglob("*") if path.is_file()) / 2**20
    count = sum(1 for path in (written / "models").iterdir())
    print_line(f"{written / 'index.html'}: {counted(count, 'model')}, {size:.0f} MiB in all")
