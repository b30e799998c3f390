"""Draw the screenshots of docs/images with a real Chromium: python docs/screenshots.py [viewing] [PAGE ...].

Without names, all of them: the viewer, and every page of the workbench in light, dark and at the width of a phone.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright
from skimage import data

import regard

IMAGES = Path(__file__).parent / "images"
REVIEW = (
    "I went in with low hopes. The first half hour is slow, and the dialogue feels forced in places. But then the film "
    "finds its feet! The lead actress is wonderful, funny and moving. The music is gorgeous. Some scenes are too long. "
    "Still, I would recommend it to anyone who likes a good story well told."
)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PAGES = {
    "home": "/",
    "attention": "/attention",
    "translate": "/translate?text=The+man+in+the+red+jacket+is+reading+an+old+book.&at=6",
    "caption": "/caption?box=[0.01,0.36,0.26,0.68]",
    "classify": "/classify?removed=[30,31]",
    "read": "/read?word=8",
    "tape": "/tape",
    "glimpse": "/glimpse?locations=[[1,0.2,0.8]]",
    "recognize": "/recognize?step=6",
}
"""The pages of the workbench, with the state that is shown."""
LOOKS = {"light": (1240, "light"), "dark": (1240, "dark"), "phone": (390, "light")}
"""Width and colour scheme of each screenshot of a page."""
MAX_HEIGHT = 2000
QUALITY, MAX_COLOURS = 80, 10_000
"""The quality of screenshots that show photographs, which have more colours than this."""


def views() -> list[tuple[regard.viewing.View, int, str]]:
    """Views with the width of their screenshot and a colour scheme."""
    translation = regard.load("en-fr").translate("The man in the red jacket is reading an old book.")
    caption = regard.load("photo-en").caption(Image.fromarray(data.astronaut()))
    review = regard.load("reviews-en").classify(REVIEW)
    return [
        (regard.view(translation), 800, "light"),
        (regard.view(caption), 720, "light"),
        (regard.view(review), 1540, "dark"),
    ]


def shot(page: Any, width: int, scheme: str, address: str) -> Image.Image:
    """Open an address, wait until nothing is under way, and take a picture of the whole page."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 300 if address.startswith("file:") else 900})
    page.goto(address)
    page.locator(".picture svg, .picture canvas, .card, .step, main canvas").first.wait_for(
        state="attached", timeout=60_000
    )
    page.wait_for_load_state("networkidle")
    page.wait_for_function("() => !document.querySelector('.status')", timeout=60_000)
    page.wait_for_timeout(800)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shot.png"
        page.screenshot(path=file, full_page=True)
        return Image.open(file).convert("RGB")


def draw_viewer(page: Any, folder: Path) -> None:
    """Write docs/images/viewing.png: three views on one sheet."""
    shots = [
        shot(page, width, scheme, view.save(folder / f"{number}.html").as_uri())
        for number, (view, width, scheme) in enumerate(views())
    ]
    first, second, third = shots
    height = max(first.height, second.height)
    sheet = Image.new("RGB", (max(first.width + second.width, third.width), height + third.height), "white")
    for image, corner in ((first, (0, 0)), (second, (first.width, 0)), (third, (0, height))):
        sheet.paste(image, corner)
    ImageOps.expand(sheet, 1, "#d4d9df").quantize(256).save(IMAGES / "viewing.png", optimize=True)


@contextmanager
def server() -> Iterator[str]:
    """The address of a workbench."""
    command = [sys.executable, "-m", "regard", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        line = process.stdout.readline() if process.stdout else ""
        found = re.search(r"http://[\d.:]+", line)
        if not found:
            raise RuntimeError(f"The server did not start: {line}")
        yield found[0]
        process.terminate()


def draw_pages(page: Any, names: list[str]) -> None:
    """Write docs/images/workbench/PAGE-LOOK.webp."""
    folder = IMAGES / "workbench"
    folder.mkdir(exist_ok=True)
    with server() as address:
        for name in names:
            for look, (width, scheme) in LOOKS.items():
                image = shot(page, width, scheme, address + PAGES[name])
                save_small(
                    image.crop((0, 0, image.width, min(image.height, MAX_HEIGHT))), folder / f"{name}-{look}.webp"
                )


def draw_summary() -> None:
    """Write docs/images/workbench.webp, for the README: three of the pages beside each other, smaller."""
    sheet = Image.new("RGB", (1500, 900), "#8a94a0")
    for name, width, corner in (
        ("translate-light", 700, (20, 20)),
        ("caption-dark", 560, (500, 60)),
        ("classify-phone", 380, (1100, 20)),
    ):
        image = Image.open(IMAGES / "workbench" / f"{name}.webp").convert("RGB")
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
        sheet.paste(ImageOps.expand(image, 1, "#59626d"), corner)
    sheet.save(IMAGES / "workbench.webp", quality=QUALITY, method=6)


def save_small(image: Image.Image, path: Path) -> None:
    """Save a screenshot without loss, which keeps text sharp; or as a photograph, where it shows one."""
    has_photograph = image.getcolors(MAX_COLOURS) is None
    image.save(path, lossless=not has_photograph, quality=QUALITY, method=6)


def main(names: list[str]) -> None:
    """Draw what is named, or everything."""
    chosen = names or ["viewing", *PAGES]
    if unknown := [name for name in chosen if name not in ("viewing", *PAGES)]:
        sys.exit(f"There is no screenshot {unknown[0]}; choose from viewing, {', '.join(PAGES)}.")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = shutil.which("chromium") or playwright.chromium.executable_path
        context = playwright.chromium.launch_persistent_context(
            Path(folder) / "profile", executable_path=chromium, args=FLAGS
        )
        page = context.new_page()
        if "viewing" in chosen:
            draw_viewer(page, Path(folder))
        if pages := [name for name in PAGES if name in chosen]:
            draw_pages(page, pages)
            draw_summary()
        context.close()


if __name__ == "__main__":
    main(sys.argv[1:])
