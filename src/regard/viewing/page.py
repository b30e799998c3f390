"""Views as HTML: web components with the trace inside, as the output of a notebook cell or as a page in one file.

Nothing is loaded from anywhere. Where scripts do not run, as in a notebook that is not trusted, a table is shown. The
components of `web/` are ES modules, which a server delivers as they are. A page without a server cannot import modules,
so they are joined here: each becomes a function that returns what it exports, after those that it needs.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from regard.errors import RegardError
from regard.trace import Trace

ENTRY = "index.js"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+\.js)";\n', re.M)
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.M)
_COMMENT_LINE = re.compile(r"^[ \t]*//.*\n", re.M)
_COMMENT_BLOCK = re.compile(r"^[ \t]*/\*\*(?:[^*]|\*(?!/))*\*/[ \t]*\n", re.M)
_INDENT = re.compile(r"^[ \t]+", re.M)
_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="$policy">
<title>$title</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.25rem; margin: 0.4rem 0 0.8rem; overflow-wrap: anywhere; }
@media (max-width: 30rem) { body { padding: 0.5rem; } }
</style>
</head>
<body>
<main>
<h1>$title</h1>
$component
</main>
<script>$script</script>
</body>
</html>
""")


def component(
    trace: Trace,
    elements: Sequence[str],
    *,
    shown: str | None = None,
    options: Mapping[str, Any] | None = None,
    table: str = "",
) -> str:
    """The element that shows a trace, with the trace and a static table inside; `script` brings it to life.

    `elements` are the names of the views to choose from ("matrix", "lines", ...), `shown` is the one that comes first,
    `options` are options of the elements, such as {"layer": 1}, and `table` is HTML for where scripts do not run.
    """
    attributes = {"elements": " ".join(elements), "shown": shown, "options": json.dumps(options) if options else None}
    written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
    data = f'<script type="application/json">{script_json(trace.to_dict())}</script>'
    return f"<attention-view{written}>{data}{table}</attention-view>"


def notebook_output(component: str) -> str:
    """A component as the output of a notebook cell, with the script, so that each output can stand alone."""
    return f"{component}<script>{script()}</script>"


def page(component: str, *, title: str) -> str:
    """A complete page in one file.

    Its content security policy allows this script and embedded images, and no connection at all.
    """
    # The script and the component, which escapes its parts, stand in the page as they are.
    return _PAGE.substitute(title=escape(title), policy=escape(_policy(script())), component=component, script=script())


def script_json(value: Any) -> str:
    """JSON that cannot end the <script> element around it, whatever its strings contain."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


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


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
