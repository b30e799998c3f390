"""The pages of the workbench as files: every page has its module, and all of them are packaged."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

from starlette.testclient import TestClient

import regard
from regard.serving.app import create_app
from regard.serving.settings import ServerSettings
from regard.systems import registry
from regard.systems.registry import SYSTEMS

FOLDER = files("regard.serving").joinpath("pages")
ROOT = Path(regard.__file__).parents[2]
TOKEN = "a-token"  # noqa: S105


def test_every_page_answers_with_the_same_shell(client):
    shell = FOLDER.joinpath("index.html").read_text(encoding="utf-8")
    for name in ("", "attention", *SYSTEMS):
        answer = client.get(f"/{name}")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache", "a new version is seen at once"
        assert answer.text == shell
    assert client.get("/nowhere").json()["error"]["message"] == "Not Found"
    for path in ("/nowhere", "/nowhere/else"):
        answer = client.get(path, headers={"accept": "text/html,*/*"})
        assert (answer.status_code, "<script" in answer.text) == (404, True), "a browser gets a page"
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?://", shell), "the policy forbids these"


def test_every_system_has_a_page_and_is_listed_with_it(client):
    listed = client.get("/v1/systems").json()["systems"]
    assert [each["name"] for each in listed] == list(SYSTEMS)
    assert listed[0]["model"] == registry.entry("translate").declaration.default_model


def test_the_page_of_a_system_is_served_from_its_folder_and_nothing_else_of_it(tmp_path, monkeypatch):
    for name, text in {"page.js": "export default class {}", "__init__.py": "", "secret.txt": "a secret"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(
        registry.Entry, "page", property(lambda each: tmp_path / "page.js" if each.name == "tape" else None)
    )
    with TestClient(create_app(ServerSettings(token=TOKEN)), base_url="http://localhost") as client:
        (listed,) = client.get("/v1/systems").json()["systems"]
        assert (listed["name"], listed["summary"]) == ("tape", registry.entry("tape").declaration.summary)
        answer = client.get(listed["page"])
        assert answer.headers["content-type"].startswith("text/javascript")
        assert answer.text == "export default class {}"
        for other in ("secret.txt", "__init__.py", "nothing.js", "%2e%2e/page.js"):
            assert client.get(f"/systems/tape/{other}").status_code == 404


def test_colours_are_those_of_the_web_components():
    css = FOLDER.joinpath("pages.css").read_text(encoding="utf-8")
    theme = files("regard.viewing").joinpath("web", "colours.js").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r'(\w+): "(#\w+)"', part)) for part in theme.split("dark: {"))
    for name, colour in light.items():
        assert f"--{name}: light-dark({colour}, {dark[name]});" in css


def test_modules_are_served_as_javascript_and_import_only_what_is_there(client):
    systems = files("regard.systems")
    places = {"/pages": FOLDER, **{f"/systems/{name}": systems.joinpath(name) for name in SYSTEMS}}
    modules = [f"{place}/{file.name}" for place, folder in places.items() for file in folder.iterdir()]
    modules = [path for path in modules if path.endswith(".js")]
    assert {"/pages/main.js", "/pages/page.js", "/systems/tape/page.js"} <= set(modules)
    for path in modules:
        answer = client.get(path)
        assert answer.headers["content-type"].startswith("text/javascript")
        lines = answer.text.splitlines()
        assert len(lines) <= 350
        assert max(map(len, lines)) <= 120
        for imported in re.findall(r'(?:from|import) "([^"]+)"', answer.text):
            assert client.get(imported).status_code == 200, f"{path} imports {imported}"


def test_the_pages_are_part_of_the_package():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build == {"packages": ["src/regard"]}, "everything below src/regard is packaged"
