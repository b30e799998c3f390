"""The web components as one script: complete, in order, and safe inside a page."""

import pytest

from regard.errors import RegardError
from regard.viewing import page

NAMES = page.module_names()


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_read_in_one_sitting(name):
    lines = page.module_text(name).splitlines()
    assert len(lines) <= 600
    assert max(map(len, lines)) <= 120
    assert lines[0].startswith("// "), "a module begins by saying what it is for"


def test_the_script_has_every_module_after_those_that_it_needs():
    script = page.script()
    places = {name: script.index(f'modules["{name}"] = ') for name in NAMES}
    for name in NAMES:
        for _, needed in page._IMPORT.findall(page.module_text(name)):
            assert places[needed] < places[name]
    assert not [line for line in script.splitlines() if line.startswith(("import ", "export "))]


def test_no_module_asks_the_network_or_builds_html_from_text():
    for name in NAMES:
        text = page.module_text(name)
        forbidden = ("fetch(", "XMLHttpRequest", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "WebSocket")
        assert not [word for word in forbidden if word in text], name
        addresses = [word for word in text.split('"') if word.startswith("http")]
        assert addresses in ([], ["http://www.w3.org/2000/svg"]), name


def modules(monkeypatch, files):
    monkeypatch.setattr(page, "module_text", files.__getitem__)
    return page.script.__wrapped__()


def test_modules_become_functions_that_return_what_they_export(monkeypatch):
    script = modules(
        monkeypatch,
        {
            "index.js": 'import { one, two as other } from "./a.js";\n\n/** Adds. */\none(other);\n',
            "a.js": "// What it is.\nexport const two = 2;\n\nexport function one(x) {\n  return x + 1;\n}\n",
        },
    )
    assert 'const { one, two: other } = modules["a.js"];' in script
    assert "return {two, one};" in script
    assert "What it is" not in script
    assert "Adds" not in script


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"index.js": 'import { a } from "./a.js";\n', "a.js": 'import { b } from "./index.js";\n'}, "in a circle"),
        ({"index.js": "export default 3;\n"}, "not known here: export default 3"),
        ({"index.js": 'import * as a from "./a.js";\n'}, "not known here"),
        ({"index.js": 'const a = "</script>";\n'}, "would end an inline script"),
    ],
)
def test_modules_that_cannot_be_joined_are_explained(monkeypatch, files, says):
    with pytest.raises(RegardError, match=says):
        modules(monkeypatch, files)
