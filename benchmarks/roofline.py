"""Draw the roofline of additive scores: the hardware limits of a GPU, and how close each implementation comes.

    regard bench --compiled --json attention.json
    python benchmarks/roofline.py attention.json roofline.png [MILLISECONDS of the kernel alone]

The limits are those of one NVIDIA H200: 4.8 TB/s of memory, and 132 multiprocessors at 1.98 GHz with 16
special-function units (one tanh each) and 128 multiply-add units. Rates count the features of query-key pairs. The
formula writes and reads the features of all pairs four times in float32; the others only read queries and keys and
write the scores.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from regard.viewing import save

SIZE = (8, 1024, 1024, 512)
"""Batch, queries, keys and features."""
CONTEST = f"additive scores alone, forward, b q k d = {' '.join(map(str, SIZE))}"
BYTES_PER_SECOND, CLOCK, MULTIPROCESSORS = 4.8e12, 1.98e9, 132
MAX_TANH_RATE = MULTIPROCESSORS * 16 * CLOCK
MAX_FRACTION_RATE = MULTIPROCESSORS * 128 * CLOCK / 3.5
"""Without tanh: 14 multiply-adds for four features."""
COLOURS = {"formula": "#D55E00", "torch.compile": "#CC79A7", "regard": "#0072B2"}


def draw(results: list[dict[str, float | str]], kernel_milliseconds: list[float]) -> Figure:
    """The limits as lines, and the measurements of `regard bench --json` as points."""
    batch, queries, keys, dim = SIZE
    features = math.prod(SIZE)
    minimal_bytes = 4 * batch * (queries * dim + keys * dim + queries * keys)
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    intensity = np.logspace(-2, 3, 200)
    axes.plot(intensity, np.minimum(BYTES_PER_SECOND * intensity, MAX_TANH_RATE), color="0.55", linestyle="--")
    axes.plot(intensity, np.minimum(BYTES_PER_SECOND * intensity, MAX_FRACTION_RATE), color="0.15")
    axes.text(1.1, MAX_TANH_RATE * 1.12, "tanh: special-function units", color="0.4", fontsize="small")
    axes.text(2.5, MAX_FRACTION_RATE * 1.15, "shared fractions: multiply-add units", color="0.15", fontsize="small")
    axes.text(0.06, BYTES_PER_SECOND * 0.06 * 1.7, "memory", color="0.15", rotation=33)
    for result in results:
        if result["contest"] == CONTEST:
            rival, rate = str(result["rival"]), features / float(result["median"])
            place = features / (16 * features if rival == "formula" else minimal_bytes), rate
            axes.plot(*place, "o", markersize=9, color=COLOURS[rival])
            label = f"{rival}: {1e3 * float(result['median']):.2f} ms"
            axes.annotate(label, place, (9, -14), textcoords="offset points", color=COLOURS[rival])
    for milliseconds in kernel_milliseconds:
        place = features / minimal_bytes, 1e3 * features / milliseconds
        axes.plot(*place, "o", markersize=9, color="white", markeredgecolor=COLOURS["regard"])
        label = f"regard's kernel alone: {milliseconds:.2f} ms"
        axes.annotate(label, place, (9, 4), textcoords="offset points", color=COLOURS["regard"])
    axes.set(xscale="log", yscale="log", xlim=(0.01, 1000), ylim=(3e10, 3e13))
    axes.set_xlabel("features per byte of memory traffic")
    axes.set_ylabel("features per second")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timings", type=Path, help="the JSON of `regard bench`")
    parser.add_argument("figure", type=Path, help="file to write, such as roofline.png")
    parser.add_argument("milliseconds", type=float, nargs="*", help="times of the kernel alone")
    arguments = parser.parse_args()
    results = json.loads(arguments.timings.read_text(encoding="utf-8"))["results"]
    save(draw(results, arguments.milliseconds), arguments.figure)


if __name__ == "__main__":
    main()
