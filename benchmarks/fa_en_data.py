"""Training files for the recipe fa-en: what Persian there is, and other languages beside it.

    python benchmarks/fa_en_data.py OUT tatoeba-fa.tsv.gz messages.tsv.gz fra-eng.zip deu-eng.zip

The first two files hold English<TAB>Persian, the others English and another language. Validation and test sentences
come from the first alone, 300 and 500 English sentences; no pair with one of them, in either language, is trained on.
There is little Persian, so it is repeated three times; sentences of the world babel add what grammar they can, and
80,000 pairs of each other language teach the decoder everyday English. Writes (train, valid, test).(fa, en) into OUT.
"""

import hashlib
import re
import sys
from itertools import islice
from pathlib import Path

from regard.data.text import read_tsv
from regard.worlds.babel import pairs

VALID, TEST = 300, 500
REPEATED, BABEL, OTHER = 3, 20_000, 80_000


def main() -> None:
    out, *files = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    everyday, messages, *others = [list(dict.fromkeys(read_tsv(file))) for file in files]
    shuffled = sorted({english for english, _ in everyday}, key=_digest)
    parts = {"valid": set(shuffled[:VALID]), "test": set(shuffled[VALID : VALID + TEST])}
    held_out = {text for pair in everyday if any(pair[0] in part for part in parts.values()) for text in pair}
    trained = REPEATED * (everyday + messages)
    trained += [(_written(pair.target), _written(pair.source)) for pair in islice(pairs("fa", "en"), BABEL)]
    for other in others:
        trained += sorted(other, key=lambda pair: _digest("".join(pair)))[:OTHER]
    _write(out, "train", [pair for pair in trained if not held_out.intersection(pair)])
    for name, part in parts.items():
        first = {english: persian for english, persian in reversed(everyday) if english in part}
        _write(out, name, sorted(first.items()))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _written(words: tuple[str, ...]) -> str:
    """Words as a sentence is written: a capital at the start, no space before marks."""
    text = re.sub(r" (?=[.,?!؟،])", "", " ".join(words))
    return text[:1].upper() + text[1:]


def _write(out: Path, name: str, chosen: list[tuple[str, str]]) -> None:
    for side, language in enumerate(("en", "fa")):
        (out / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in chosen), encoding="utf-8")
    sys.stdout.write(f"{name}: {len(chosen)} pairs\n")


if __name__ == "__main__":
    main()
