"""An exported translator beside its model: BLEU, equal translations, attention, and tokens per CPU second.

    OMP_NUM_THREADS=1 python benchmarks/exports.py en-fr test.en test.fr --count 500

Both translate the same sentences, one at a time and in turn, so that a busy machine slows down both.
"""

import argparse
import gzip
import tempfile
import time
from pathlib import Path

import numpy as np
import sacrebleu

import regard


def lines(path: Path, count: int) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        return [line.strip() for line, _ in zip(stream, range(count), strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a shipped model or a model folder")
    parser.add_argument("source", type=Path, help="sentences to translate, one per line; may end in .gz")
    parser.add_argument("reference", type=Path, help="their translations")
    parser.add_argument("--count", type=int, default=500, help="number of sentences")
    parser.add_argument("--beam", type=int, default=5, help="beam size")
    parser.add_argument("--precision", choices=("int8", "float32"), default="int8")
    given = parser.parse_args()
    sources, references = lines(given.source, given.count), lines(given.reference, given.count)
    with tempfile.TemporaryDirectory() as folder:
        exported = regard.export(given.model, Path(folder) / "exported", precision=given.precision)
        engines = {"torch": regard.load(given.model, device="cpu"), given.precision: regard.load(exported)}
        results = {name: [] for name in engines}
        seconds = dict.fromkeys(engines, 0.0)
        for model in engines.values():
            model.translate(sources[0], beam=given.beam)
        for source in sources:
            for name, model in engines.items():
                start = time.process_time()
                results[name].append(model.translate(source, beam=given.beam, split=False))
                seconds[name] += time.process_time() - start
    for name, found in results.items():
        bleu = sacrebleu.corpus_bleu([each.text for each in found], [references]).score
        tokens = sum(len(each.trace.axes[1].labels) for each in found)
        print(f"{name:8} BLEU {bleu:.2f}, {tokens / seconds[name]:,.0f} tokens per CPU second")
    pairs = [pair for pair in zip(*results.values(), strict=True) if pair[0].text == pair[1].text]
    differences = [np.abs(np.subtract(*(each.trace.maps[0].weights for each in pair))).max() for pair in pairs]
    print(f"equal translations: {len(pairs)} of {len(sources)}; largest difference of a weight: {max(differences):.1e}")


if __name__ == "__main__":
    main()
