"""Draw the screenshots of docs/images with a real Chromium: python docs/screenshots.py."""

import shutil
import tempfile
from pathlib import Path

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


def main() -> None:
    """Write docs/images/viewing.png."""
    shots = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = shutil.which("chromium") or playwright.chromium.executable_path
        context = playwright.chromium.launch_persistent_context(folder, executable_path=chromium, args=FLAGS)
        for number, (view, width, scheme) in enumerate(views()):
            page = context.new_page()
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 300})
            page.goto(view.save(Path(folder) / f"{number}.html").as_uri())
            page.locator(".picture svg").first.wait_for()
            page.wait_for_timeout(500)
            shot = Path(folder) / f"{number}.png"
            page.screenshot(path=shot, full_page=True)
            shots.append(Image.open(shot).convert("RGB"))
        context.close()
    first, second, third = shots
    height = max(first.height, second.height)
    sheet = Image.new("RGB", (max(first.width + second.width, third.width), height + third.height), "white")
    for image, place in ((first, (0, 0)), (second, (first.width, 0)), (third, (0, height))):
        sheet.paste(image, place)
    ImageOps.expand(sheet, 1, "#d4d9df").quantize(256).save(IMAGES / "viewing.png", optimize=True)


if __name__ == "__main__":
    main()
