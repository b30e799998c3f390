"""Inputs of the recorded outputs that are generated or ship with other packages. This file does not import regard."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE = 64
"""Height and width of a rendered digit in pixels."""
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSerif", "DejaVuSerif-Italic", "DejaVuSansMono")
PHOTOGRAPHS = (
    "astronaut",
    "camera",
    "chelsea",
    "coffee",
    "rocket",
    "stereo_motorcycle",
    "coins",
    "moon",
    "brick",
    "grass",
    "gravel",
    "hubble_deep_field",
)
"""Images in scikit-image's own package, which are read without a download."""


def render_digits(count: int, *, seed: int = 0) -> list[tuple[Image.Image, int]]:
    """Render digits in several fonts, each under a random affine map: (grey image, digit), digit = index % 10.

    Two of three are dark on light, as on paper; the others are light on dark.
    """
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    fonts = [
        ImageFont.truetype(str(folder / f"{name}.ttf"), 44, layout_engine=ImageFont.Layout.BASIC) for name in FONTS
    ]
    random = np.random.default_rng(seed)
    rendered = []
    for index in range(count):
        digit, font = index % 10, fonts[int(random.integers(len(fonts)))]
        angle, shear = random.uniform(-0.25, 0.25), random.uniform(-0.2, 0.2)
        scale, shift = random.uniform(0.9, 1.3), random.uniform(-5, 5, size=2)
        page = Image.new("L", (SIDE, SIDE), 0)
        ImageDraw.Draw(page).text((SIDE / 2, SIDE / 2), str(digit), fill=255, font=font, anchor="mm")
        cosine, sine, middle = scale * np.cos(angle), scale * np.sin(angle), SIDE / 2
        linear = np.array([[cosine, -sine], [sine, cosine]]) @ np.array([[1.0, shear], [0.0, 1.0]])
        offset = middle + shift - linear @ np.array([middle, middle])
        # Rounded, so that the last bit of a cosine does not decide a pixel.
        numbers = [round(float(number), 6) for number in (*linear[0], offset[0], *linear[1], offset[1])]
        turned = page.transform((SIDE, SIDE), Image.Transform.AFFINE, tuple(numbers), Image.Resampling.BILINEAR)
        pixels = np.asarray(turned)
        rendered.append((Image.fromarray(255 - pixels if index % 3 else pixels), digit))
    return rendered


def write_digit_folders(folder: str | Path, count: int, *, seed: int = 0) -> None:
    """Write rendered digits as PNG into one folder for each class: 0/0000.png, 1/0001.png, ..."""
    for index, (image, digit) in enumerate(render_digits(count, seed=seed)):
        place = Path(folder) / str(digit)
        place.mkdir(parents=True, exist_ok=True)
        image.save(place / f"{index:04}.png")


def photograph(name: str) -> Image.Image:
    """Open one of `PHOTOGRAPHS` in RGB."""
    import skimage.data

    loaded = getattr(skimage.data, name)()
    return Image.fromarray(loaded[0] if isinstance(loaded, tuple) else loaded).convert("RGB")


def digest(images: Iterable[Image.Image | np.ndarray]) -> str:
    """Hash the pixels of images: equal hashes, equal inputs."""
    found = hashlib.sha256()
    for image in images:
        pixels = np.asarray(image)
        found.update(repr(pixels.shape).encode() + np.ascontiguousarray(pixels).tobytes())
    return found.hexdigest()
