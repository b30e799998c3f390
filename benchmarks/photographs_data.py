"""Collect the captions and boxes that the recipe photographs-adaptive learns from: Flickr8k, and photographs of COCO.

    python benchmarks/photographs_data.py OUT --flickr captions.tsv.gz --regions regions.tsv.xz --coco captions.tsv.xz

Each file of captions is a table: image, split, number, caption. The images of both go into OUT too, as folders or
archives whose names begin with "images".
"""

import argparse
from itertools import chain
from pathlib import Path

from regard.data.text import read_lines

COLUMNS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write captions.tsv and regions.tsv to")
    parser.add_argument("--flickr", type=Path, required=True)
    parser.add_argument("--coco", type=Path, required=True)
    parser.add_argument("--regions", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = [line for path in (given.flickr, given.coco) for line in read_lines(path)]
    kept = [row for row in rows if row.count("\t") == COLUMNS - 1 and row.split("\t")[1] != "none"]
    (given.out / "captions.tsv").write_text("".join(f"{row}\n" for row in kept), encoding="utf-8")
    boxes = list(chain.from_iterable(map(read_lines, given.regions)))
    (given.out / "regions.tsv").write_text("".join(f"{row}\n" for row in boxes), encoding="utf-8")
    print(f"{len(kept):,} of {len(rows):,} captions, {len(boxes):,} boxes")


if __name__ == "__main__":
    main()
