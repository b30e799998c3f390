"""Parts of the reference that are written from the code: a fenced block `{generated} NAME` in a page."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

PUBLIC = (
    "attention",
    "score",
    "align",
    "mask",
    "layers",
    "encoders",
    "decoders",
    "metrics",
    "data",
    "training",
    "viewing",
)
"""The folders whose names users import, besides regard itself."""
SHORTER = re.compile(r"\b(?:jaxtyping|torch|collections\.abc|typing|pathlib|numpy|regard(?:\.\w+)+?)\.(?=[A-Z])")
LINE = 88


def commands() -> Iterator[str]:
    """Every command, as it explains itself."""
    from regard.cli import build_app
    from regard.cli import commands as known

    text = build_app([*known(), "data"]).generate_docs("markdown", heading_level=2)
    # Below the list of commands; with it, the names of headings would be there twice.
    yield "## regard bench" + text.partition("### regard bench")[2].replace("\n### ", "\n## ").replace(
        "\n#### ", "\n### "
    )


def recipe_fields() -> Iterator[str]:
    """Every field of a recipe, by system and table."""
    from regard.config import fields_of
    from regard.systems import registry

    for each in registry.entries():
        yield f"## {each.name}\n"
        for table, config in each.tables.items():
            yield f"### {each.name}: [{table}]\n\n| field | accepts | default | meaning |\n|---|---|---|---|"
            for field in fields_of(config):
                default = "" if field.default in ("", None, ()) else f"`{field.default}`"
                cells = (f"`{table}.{field.name}`", field.allowed, default, field.meaning)
                yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"
            yield ""


def http() -> Iterator[str]:
    """Every route of the server, with what it takes and what it answers, from its OpenAPI description."""
    from regard.serving import create_app

    description = create_app().openapi()
    schemas = description["components"]["schemas"]
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            yield f"## {method.upper()} {path}\n\n{_plain(route.get('description') or route['summary'])}\n"
            body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            yield from _fields_table("takes", body, schemas)
            answer = next((code for code in route["responses"] if code.startswith("2")), "")
            content = route["responses"].get(answer, {}).get("content", {}).get("application/json", {})
            yield from _fields_table("answers with", content.get("schema"), schemas)


def _fields_table(title: str, schema: dict[str, Any] | None, schemas: dict[str, Any]) -> Iterator[str]:
    """The fields of an object of a request or an answer."""
    resolved = _resolved(schema or {}, schemas)
    if not resolved.get("properties"):
        return
    yield f"| {title} | type | default | |\n|---|---|---|---|"
    required = resolved.get("required", ())
    for name, field in resolved["properties"].items():
        given = f"`{field['default']!r}`" if field.get("default") is not None else ""
        cells = (f"`{name}`", _type_of(field, schemas), "required" if name in required else given)
        yield "| " + " | ".join(_cell(cell) for cell in (*cells, field.get("description", ""))) + " |"
    yield ""


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _type_of(field: dict[str, Any], schemas: dict[str, Any]) -> str:
    """What a field of JSON is, in words."""
    if "$ref" in field:
        inner = _resolved(field, schemas)
        names = ", ".join(inner.get("properties", {}))
        return f"{field['$ref'].rpartition('/')[2]}: {names}" if names else _type_of(inner, schemas)
    for together in ("anyOf", "oneOf", "allOf"):
        if together in field:
            return " or ".join(dict.fromkeys(_type_of(each, schemas) for each in field[together]))
    if "enum" in field:
        return ", ".join(repr(each) for each in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type_of(field.get('items', {}), schemas)}"
    return str(field.get("const", field.get("type", "anything")))


def trace() -> Iterator[str]:
    """The elements of a trace: their fields, and those of their JSON."""
    from regard.trace import Axis, Box, Map, Series, Trace

    for element in (Trace, Axis, Map, Series, Box):
        documented = ModuleAnalyzer.for_module(element.__module__).find_attr_docs()
        yield f"## {element.__name__}\n\n{_docstring(element)}\n\n| field | type | |\n|---|---|---|"
        for field in dataclasses.fields(element):
            meaning = " ".join(documented.get((element.__name__, field.name), ()))
            yield f"| `{field.name}` | `{_cell(_short(str(field.type)))}` | {_cell(meaning)} |"
        yield ""


def names() -> Iterator[str]:
    """Every public name: its signature, and what it says about itself."""
    import regard

    listed = [name for name in regard.__all__ if name != "__version__" and not inspect.ismodule(getattr(regard, name))]
    yield "## regard\n"
    for name in listed:
        yield from _entry(f"regard.{name}", getattr(regard, name))
    seen = {id(getattr(regard, name)) for name in listed}
    for folder in PUBLIC:
        module = getattr(regard, folder, None) or import_module(f"regard.{folder}")
        found = {name: getattr(module, name) for name in sorted(module.__all__)}
        yield f"## regard.{folder}\n\n{_docstring(module).partition(chr(10) * 2)[0]}\n"
        for name, value in found.items():
            if (
                id(value) not in seen
                and not inspect.ismodule(value)
                and (inspect.isfunction(value) or inspect.isclass(value))
            ):
                seen.add(id(value))
                yield from _entry(f"regard.{folder}.{name}", value)


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n\n```python\n{_signature(name, value)}\n```\n\n{_docstring(value)}\n"
    if inspect.isclass(value) and value.__module__.startswith("regard"):
        members = [
            (each, member)
            for each, member in vars(value).items()
            if not each.startswith("_")
            and callable(getattr(member, "__func__", member))
            and not inspect.isclass(member)
        ]
        for each, member in members:
            first = (inspect.getdoc(getattr(member, "__func__", member)) or "").partition("\n\n")[0].replace("\n", " ")
            if first:
                yield f"- `{each}`: {first}"
        yield ""


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parts = [_short(str(each)) for each in signature.parameters.values() if each.name != "self"]
    kinds = [each.kind for each in signature.parameters.values() if each.name != "self"]
    for index, kind in enumerate(kinds):
        if kind is inspect.Parameter.KEYWORD_ONLY and inspect.Parameter.VAR_POSITIONAL not in kinds:
            parts.insert(index, "*")
            break
    line = f"{name}({', '.join(parts)})"
    return line if len(line) <= LINE else f"{name}(\n    " + ",\n    ".join(parts) + ",\n)"


def _short(text: str) -> str:
    """Types without the modules that they are from."""
    text = re.sub(r"Annotated\[([^,\[\]]+), msgspec[^\]]*\]", r"\1", SHORTER.sub("", text))
    return re.sub(r"<(?:function|class) '?([\w.]+)[^>]*>", r"\1", text)


def _docstring(value: Any) -> str:
    """A docstring as Markdown: its sections of parameters become lists."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r"^(Parameters|Returns|Raises)\n-+\n", r"**\1**\n\n", text, flags=re.MULTILINE)
    return re.sub(r"^(\w+)\n {4}(?=\S)", r"- `\1`: ", text, flags=re.MULTILINE)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|").replace("<", "&lt;")


GENERATED: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "recipe-fields": recipe_fields,
    "http": http,
    "trace": trace,
    "names": names,
}


class Generated(SphinxDirective):
    """Puts a generated part into a page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the generated Markdown, headings included."""
        lines = "\n".join(GENERATED[self.arguments[0]]()).splitlines()
        container = nodes.Element()
        self.state.nested_parse(StringList(lines, source=self.env.docname), 0, container, match_titles=True)
        return container.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
