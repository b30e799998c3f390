"""The same components in every place: served as modules, in a file, in a notebook, and where no script runs."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from browser.showing import html_of, settle
from helpers.traces import caption, document, translation
from nbconvert import HTMLExporter

import regard
from regard.viewing.page import component, module_names, module_text, notebook_output, script

ORIGIN = "http://workbench.test"
STRICT = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:"
PAGE = """<!DOCTYPE html><title>t</title><attention-matrix></attention-matrix>
<script type="module" src="index.js"></script>"""
CELL = """
from regard import Report, Trace
from regard.systems.report import Measure

trace = Trace.from_weights(["the", "dog"], ["le", "chien"], [[0.9, 0.1], [0.25, 0.75]])
"""


def test_a_server_may_forbid_inline_scripts_and_styles(browser):
    """The workbench serves the modules as they are."""
    page = browser.new_page()
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))

    def answer(route):
        name = route.request.url.removeprefix(f"{ORIGIN}/")
        if name == "":
            route.fulfill(body=PAGE, content_type="text/html", headers={"Content-Security-Policy": STRICT})
        elif name in module_names():
            route.fulfill(body=module_text(name), content_type="text/javascript")
        else:
            route.fulfill(status=404)

    page.route(f"{ORIGIN}/**", answer)
    page.goto(f"{ORIGIN}/")
    page.evaluate("(json) => { document.querySelector('attention-matrix').trace = json; }", translation().to_dict())
    page.get_by_text("zone").first.wait_for()
    settle(page)
    page.close()
    assert [each for each in problems if "favicon" not in each and "404" not in each] == []


def test_a_property_that_was_set_before_the_element_was_defined_is_kept(open_page):
    page = open_page("<!DOCTYPE html><title>t</title><attention-lines></attention-lines>")
    page.evaluate("(json) => { document.querySelector('attention-lines').trace = json; }", translation().to_dict())
    page.add_script_tag(content=script())
    page.get_by_text("zone").first.wait_for()


def test_several_outputs_on_a_page_define_the_elements_once(open_page):
    outputs = [notebook_output(component(make(), names)) for make, names in (
        (translation, ("matrix", "lines")), (caption, ("image",)), (document, ("document",))
    )]  # fmt: skip
    page = open_page("<!DOCTYPE html><title>t</title><body>" + "".join(outputs))
    for name, text in (("matrix", "zone"), ("image", "star"), ("document", "sound")):
        page.locator(f"attention-{name}").get_by_text(text).first.wait_for()


def test_tabs_keep_what_is_selected(open_page):
    page = open_page(html_of(translation(), "matrix", "lines", "heads"))
    page.get_by_role("tab", name="Heads").click()
    page.locator("attention-heads .picture").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.get_by_role("tab", name="Heads").focus()
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert page.get_by_role("tab", selected=True).text_content() == "Lines"
    chosen = [
        page.get_by_label(name, exact=True).locator("option:checked").text_content() for name in ("Layer", "Head")
    ]
    assert chosen == ["2", "3"], "the head that was chosen among all heads"


def test_an_element_follows_the_theme_of_a_notebook(open_page):
    dark = "<style>body.dark { background: #111; color: #eee }</style>"
    output = notebook_output(component(translation(), ("matrix",)))
    page = open_page(f"<!DOCTYPE html><title>t</title>{dark}<body>{output}")
    frame = page.locator("attention-matrix .frame")
    frame.wait_for()
    assert "dark" not in frame.get_attribute("class")
    page.evaluate("() => document.body.classList.add('dark')")
    settle(page)
    assert "dark" in frame.get_attribute("class")


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A notebook, executed in a kernel of its own."""
    folder = tmp_path_factory.mktemp("notebook")
    report = 'Report("m", "2 <sentences>", {"BLEU": Measure(12.5)})'
    cells = [
        nbformat.v4.new_code_cell(source) for source in (CELL, "trace", report, "import regard; regard.view(trace)")
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = folder / "example.ipynb"
    path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=kernel)), encoding="utf-8")
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", str(path)]
    # The kernel imports the same regard as these tests.
    environment = {**os.environ, "PYTHONPATH": str(Path(regard.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return nbformat.read(path, as_version=4)


def test_a_notebook_displays_traces_and_reports(notebook, open_page):
    outputs = [cell.outputs[0].data for cell in notebook.cells if cell.outputs]
    assert [set(data) for data in outputs] == [{"text/html", "text/plain"}] * 3
    assert "12.50" in outputs[1]["text/html"]
    assert "2 &lt;sentences&gt;" in outputs[1]["text/html"]
    html, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    page = open_page(f"<!DOCTYPE html><title>t</title><body>{html}")
    matrices = page.locator("attention-matrix")
    matrices.nth(1).get_by_text("chien").first.wait_for()
    assert matrices.count() == 2
    assert page.locator("attention-view table").first.is_visible() is False, "the static table is hidden"


def test_where_no_script_runs_a_table_is_shown(notebook, browser, tmp_path):
    """As in a notebook that is not trusted."""
    html = notebook.cells[1].outputs[0].data["text/html"]
    policy = "<meta http-equiv=Content-Security-Policy content=\"script-src 'none'\">"
    file = tmp_path / "page.html"
    file.write_text(f"<!DOCTYPE html>{policy}<title>t</title><body>{html}", encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    table = page.locator("table")
    assert table.is_visible()
    cells = table.locator("tr:nth-child(n + 2)").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((each) => each.innerText))"
    )
    assert cells == [["le", "0.90", "0.10"], ["chien", "0.25", "0.75"]]
    page.close()
