"""The roofline of additive scores: how many features of pairs a GPU can do in a second, and what does how many.

    regard bench attention --compiled --json attention.json
    python benchmarks/roofline.py attention.json roofline.png [MILLISECONDS of the kernel alone]

The roofs are those of one NVIDIA H200: 4.8 TB/s of memory, and 132 multiprocessors at 1.98 GHz with 16 special-function
units (one tanh each) and 128 multiply-add units. The formula writes and reads the features of all pairs four times in
float32; the others only read queries and keys and write the scores.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from regard.viewing import save

SIZE = (8, 1024, 1024, 512)
BANDWIDTH, CLOCK, MULTIPROCESSORS = 4.8e12, 1.98e9, 132
TANH = MULTIPROCESSORS * 16 * CLOCK
FRACTIONS = MULTIPROCESSORS * 128 * CLOCK / 3.5
"""14 multiply-adds for four features."""
COLOURS = {"formula": "#D55E00", "torch.compile": "#CC79A7", "regard": "#0072B2"}


def main() -> None:
    results, path, *kernel = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), *sys.argv[2:]
    name = f"additive scores alone, forward, b q k d = {' '.join(map(str, SIZE))}"
    batch, queries, keys, dim = SIZE
    features = math.prod(SIZE)
    lean = 4 * batch * (queries * dim + keys * dim + queries * keys)
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    intensity = np.logspace(-2, 3, 200)
    axes.plot(intensity, np.minimum(BANDWIDTH * intensity, TANH), color="0.55", linestyle="--")
    axes.plot(intensity, np.minimum(BANDWIDTH * intensity, FRACTIONS), color="0.15")
    axes.text(1.1, TANH * 1.12, "tanh: special-function units", color="0.4", fontsize="small")
    axes.text(2.5, FRACTIONS * 1.15, "shared fractions: multiply-add units", color="0.15", fontsize="small")
    axes.text(0.06, BANDWIDTH * 0.06 * 1.7, "memory", color="0.15", rotation=33)
    for result in results["results"]:
        if result["contest"] == name:
            rival, rate = result["rival"], features / result["median"]
            traffic = 16 * features if rival == "formula" else lean
            axes.plot(features / traffic, rate, "o", markersize=9, color=COLOURS[rival])
            label = f"{rival}: {1e3 * result['median']:.2f} ms"
            axes.annotate(
                label,
                (features / traffic, rate),
                (9, -14),
                textcoords="offset points",
                color=COLOURS[rival],
            )
    for milliseconds in map(float, kernel):
        rate = 1e3 * features / milliseconds
        axes.plot(features / lean, rate, "o", markersize=9, color="white", markeredgecolor=COLOURS["regard"])
        label = f"its kernel alone: {milliseconds:.2f} ms"
        axes.annotate(label, (features / lean, rate), (9, 4), textcoords="offset points", color=COLOURS["regard"])
    axes.set(xscale="log", yscale="log", xlim=(0.01, 1000), ylim=(3e10, 3e13))
    axes.set_xlabel("features of pairs for each byte of memory traffic")
    axes.set_ylabel("features of pairs in a second")
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, Path(path))


if __name__ == "__main__":
    main()
