"""Views as HTML: web components with the trace inside, as the output of a notebook cell or as a page in one file.

Nothing is loaded from anywhere. Where scripts do not run, as in a notebook that is not trusted, a table is shown.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from regard.trace import Trace
from regard.viewing import bundle
from regard.viewing.static_tables import static_table

_STYLE = (
    ":root { color-scheme: light dark; } "
    "body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1rem; } "
    "h1 { font-size: 1.25rem; margin: 0.4rem 0 0.8rem; overflow-wrap: anywhere; } "
    "@media (max-width: 30rem) { body { padding: 0.5rem; } } "
)


def component(
    trace: Trace, elements: Sequence[str], *, shown: str | None = None, options: Mapping[str, Any] | None = None
) -> str:
    """The element that shows a trace, with the trace and a static table inside; `bundle.script` brings it to life.

    `elements` are the names of the views to choose from ("matrix", "lines", ...), `shown` is the one that comes first,
    and `options` are options of the elements, such as {"layer": 1}.
    """
    attributes = {"elements": " ".join(elements), "shown": shown, "options": json.dumps(options) if options else None}
    written = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
    return (
        f"<attention-view{written}>"
        f'<script type="application/json">{script_json(trace.to_dict())}</script>'
        f"{static_table(trace)}</attention-view>"
    )


def notebook_output(*components: str) -> str:
    """Components as the output of a notebook cell. Each carries the script, so that any of them can stand alone."""
    return f"{''.join(components)}<script>{bundle.script()}</script>"


def page(components: Sequence[str], *, title: str) -> str:
    """A complete page in one file.

    Its content security policy allows this script and embedded images, and no connection at all.
    """
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    pages = Environment(loader=PackageLoader("regard.viewing"), autoescape=True, trim_blocks=True)
    # Markup is what may stand in the page as it is: our own script and style, and components, which escape their parts.
    return pages.get_template("view.html").render(
        title=title,
        policy=_policy(bundle.script()),
        style=Markup(_STYLE),  # noqa: S704
        parts=[Markup(each) for each in components],  # noqa: S704
        script=Markup(bundle.script()),  # noqa: S704
    )


def script_json(value: Any) -> str:
    """JSON that cannot end the <script> element around it, whatever its strings contain."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
