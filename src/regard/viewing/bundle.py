"""The web components of `web/` as one script, for pages that load nothing: files, notebooks.

The components are ES modules, which a server delivers as they are. A page without a server cannot import modules, so
they are joined here: each becomes a function that returns what it exports, in the order in which they need each other.
"""

import re
from functools import cache
from importlib.resources import files

from regard.errors import RegardError

ENTRY = "index.js"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+\.js)";\n', re.M)
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.M)
_COMMENT_LINE = re.compile(r"^[ \t]*//.*\n", re.M)
_COMMENT_BLOCK = re.compile(r"^[ \t]*/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*\n", re.M)
_INDENT = re.compile(r"^[ \t]+", re.M)


def module_names() -> list[str]:
    """The files of the components."""
    return sorted(file.name for file in files("regard.viewing").joinpath("web").iterdir() if file.name.endswith(".js"))


def module_text(name: str) -> str:
    """The text of one file."""
    return files("regard.viewing").joinpath("web", name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All components as one script, without its comments; a page that runs it twice defines the elements once."""
    parts: dict[str, str] = {}
    _add(ENTRY, parts, ())
    joined = (
        '(() => {\n"use strict";\nif (customElements.get("attention-view")) return;\nconst modules = {};\n'
        + "".join(parts.values())
        + "})();\n"
    )
    if "</script" in joined.lower() or "<!--" in joined:
        raise RegardError("A file of viewing/web holds </script or <!--, which would end an inline script.")
    return joined


def _add(name: str, parts: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module after all that it imports."""
    if name in parts:
        return
    if name in above:
        raise RegardError(f"The modules {' -> '.join((*above, name))} of viewing/web import each other in a circle.")
    text = module_text(name)
    for _, needed in _IMPORT.findall(text):
        _add(needed, parts, (*above, name))
    exported = [found[1] for found in _EXPORT.findall(text)]
    body = _IMPORT.sub(lambda found: f'const {{{_destructured(found[1])}}} = modules["{found[2]}"];\n', text)
    body = _EXPORT.sub(r"\1 \2", body)
    if wrong := re.search(r"^(?:import|export)\b.*", body, re.M):
        raise RegardError(f"{name} of viewing/web has a form of import or export that is not known here: {wrong[0]}")
    body = _INDENT.sub("", _COMMENT_LINE.sub("", _COMMENT_BLOCK.sub("", body)))
    parts[name] = f'modules["{name}"] = (() => {{\n{body}return {{{", ".join(exported)}}};\n}})();\n'


def _destructured(names: str) -> str:
    """From the names of an import to those of a destructuring assignment: `a as b` becomes `a: b`."""
    return re.sub(r"\s+", " ", names.replace(" as ", ": "))
