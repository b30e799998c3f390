"""How many images of several kinds a captioner calls foreign: python benchmarks/novelty.py [MODEL] [--images PLACE ...]

Without images: generated scenes, rendered digits, noise, plain colours, and the pictures that come with scikit-image.
With them, those of folders or archives; with --captions, only those without a person, a dog or a sport in any caption,
and by what at least three of their captions name.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import skimage
import torch
from PIL import Image

import regard
from regard.data.captions import read_captions
from regard.data.images import SUFFIXES, Images, open_image
from regard.errors import DataError
from regard.worlds.digits import DigitWorld, font_glyphs
from regard.worlds.scenes import scenes

COUNT = 60
KNOWN = re.compile(
    r"\b(man|men|woman|women|person|people|boys?|girls?|child|children|kids?|dogs?|puppy|players?|baby|toddler|lady|ladies|"
    r"guys?|he|she|his|her|someone|crowd|family|couple|team|riders?|skiers?|surfers?|skat\w+|snowboard\w*|skis?|skiing|"
    r"surf\w*|tennis|baseball|soccer|frisbee|batter|pitcher|catcher|game|riding|wearing|hands?|pedestrians|passengers|"
    r"workers?|tourists|police|officer|adults|males?|females?|individuals|mother|father|bride|chef|farmer|cyclist|biker|"
    r"motorcyclist)\b"
)
NAMED = {
    "food": r"pizza|sandwich|plate|food|cake|salad|fruit|banana|broccoli|donut|vegetables|meal|bowl",
    "rooms": r"bathroom|toilet|kitchen|bedroom|living room|bed|couch|sink|refrigerator|desk|office",
    "screens": r"laptop|computer|television|phone|keyboard",
    "vehicles": r"train|bus|airplane|plane|jet|truck|car\b|motorcycle|boat",
    "streets": r"street|sign|traffic|clock|tower|building|hydrant",
    "animals": r"\bcats?\b|kitten|giraffe|zebra|elephant|bear|horse|cow|sheep|goat|bird|duck|goose",
}


def generated() -> Iterator[tuple[str, Image.Image]]:
    random = np.random.default_rng(0)
    for scene in islice(scenes(split="test", side=256), COUNT):
        yield "generated scenes", Image.fromarray(scene.image)
    for digit in DigitWorld().fixed(font_glyphs()[2], COUNT, seed=0).images[:, 0].numpy():
        yield "rendered digits", Image.fromarray(digit)
    for _ in range(COUNT):
        yield "noise", Image.fromarray(random.integers(0, 256, (224, 224, 3), dtype=np.uint8))
        yield "plain colours", Image.fromarray(np.full((64, 64, 3), random.integers(0, 256, 3), dtype=np.uint8))
    for path in sorted((Path(skimage.__file__).parent / "data").iterdir()):
        if path.suffix.lower() in SUFFIXES:
            try:
                yield "pictures of scikit-image", open_image(path)
            except DataError as error:
                print(error)


def given(places: list[Path], captions: Path | None) -> Iterator[tuple[str, Image.Image]]:
    images = Images(*places)
    if captions is None:
        yield from ((str(places[0]), images.open(name)) for name in images.names())
        return
    for one in read_captions(captions):
        texts = [text.lower() for text in one.captions]
        if one.image not in images or any(KNOWN.search(text) for text in texts):
            continue
        picture = images.open(one.image)
        yield "photographs without people, dogs, sport", picture
        for kind, words in NAMED.items():
            if sum(bool(re.search(words, text)) for text in texts) >= 3:
                yield f"of these, {kind}", picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="photo-en")
    parser.add_argument("--images", type=Path, nargs="+", default=[])
    parser.add_argument("--captions", type=Path)
    options = parser.parse_args()
    model = regard.load(options.model)
    found = defaultdict(list)
    pairs = given(options.images, options.captions) if options.images else generated()
    while batch := list(islice(pairs, 16)):
        with torch.inference_mode():
            features = model.features(model.prepare([picture.convert("RGB") for _, picture in batch]).to(model.device))
            for (kind, _), distance in zip(batch, model.novelty(features.mean(1)).tolist(), strict=True):
                found[kind].append(distance)
    for kind, distances in found.items():
        foreign = np.mean([distance > 1 for distance in distances])
        print(f"{kind}: {100 * foreign:.0f} % of {len(distances)} foreign; median novelty {np.median(distances):.2f}")


if __name__ == "__main__":
    main()
