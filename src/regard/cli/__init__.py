"""The command line: each command calls one public function, and imports what it needs only when it runs."""

import sys

from cyclopts import App

from regard import __version__
from regard.cli import bench, captioning, data, learn, look, recognition, translation
from regard.errors import RegardError

app = App(
    name="regard",
    version=__version__,
    help="Attention models you can train, measure and look inside. Start with: regard demo",
)
for command in (
    look.demo,
    learn.train,
    translation.translate,
    translation.evaluate,
    translation.align,
    captioning.caption,
    captioning.gallery,
    recognition.recognize,
    look.view,
    translation.models,
    learn.recipes,
    bench.bench,
):
    app.command(command)
about_data = App(name="data", help="Get data sets to train on, and look at generated worlds.")
for about in (data.get, data.newsgroups, data.babel, data.scenes):
    about_data.command(about)
app.command(about_data)


def main() -> None:
    """Run the command line; mistakes that can be explained end with one line, not with a traceback."""
    try:
        app()
    except (RegardError, OSError) as error:
        sys.exit(f"regard: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
