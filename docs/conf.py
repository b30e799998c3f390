"""How Sphinx builds the site: `make docs`.

The root of the sources is the root of the repository, so that a link between two pages, or from a page to the README,
is the same on a code host and on the site.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))

project = "regard"
author = "The regard developers"
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "benchmarks/notes/*.md",
    "src/regard/pretrained/*/MODEL_CARD.md",
]
exclude_patterns = [".*", "**/.*", "build", "dist", "tests"]

extensions = ["myst_nb", "mathml", "companions", "reference"]
myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst-nb.lexer"]  # of cells that are not executed, as in the tests
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "notebooks")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
smartquotes = False  # "--" stays what it is
html_theme = "furo"
html_math_renderer = "mathml"
html_show_search_summary = False  # it fetches pages, which a browser refuses for files
html_title = "regard"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = [("slides.js", {"defer": "defer"})]
