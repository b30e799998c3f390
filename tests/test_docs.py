"""The README and the pages of docs/ run as written, and everything that they mention exists."""

import inspect
import re
import shlex
import subprocess
import sys
import typing
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

from regard.cli import BENCH, DATA, commands
from regard.config import fields_of
from regard.systems import registry
from regard.training.recipes import recipe_names
from regard.viewing.view import OWN_VIEWS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LECTURES = sorted((ROOT / "docs/lectures").glob("*.md"))
"""Pages whose cells run in test_lectures.py."""
CARDS = sorted((ROOT / "src/regard/pretrained").glob("*/MODEL_CARD.md"))
NOTES = sorted((ROOT / "benchmarks/notes").glob("*.md"))
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *CARDS, *NOTES]
RECIPES = sorted((ROOT / "src/regard/recipes").glob("*.toml"))


class Block(typing.NamedTuple):
    """A fenced block of a page: its language, the file that it shows (or ""), its first line and its text."""

    language: str
    file: str
    line: int
    text: str


def blocks_of(page: Path) -> list[Block]:
    found, opened, lines = [], None, page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        fence = re.match(r"```(?:\{[\w-]+\} ?)?(\w*)(?: file=(\S+))?", line)
        if fence and opened is None:
            opened = fence[1], fence[2] or "", number
        elif fence:
            found.append(Block(*opened, "\n".join(lines[opened[2] : number - 1]) + "\n"))
            opened = None
    assert opened is None, f"{page.name}:{opened[2]} opens a block and does not close it"
    return found


def is_run(block: Block) -> bool:
    return block.language == "python" and not block.file


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in LECTURES and any(map(is_run, blocks_of(page)))],
    ids=lambda page: page.name,
)
def test_the_page_runs(page, as_a_user, tmp_path, monkeypatch):
    """From top to bottom, in an empty folder; blocks that show a file are written to it first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "MODULES", dict(registry.MODULES))
    code = [""] * len(page.read_text(encoding="utf-8").splitlines())
    for block in blocks_of(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            monkeypatch.delitem(sys.modules, Path(block.file).stem, raising=False)
        elif is_run(block):
            # On the lines where they are in the page, so that a failure points there.
            code[block.line : block.line + block.text.count("\n")] = block.text.splitlines()
    exec(compile("\n".join(code), page, "exec"), {"__name__": page.stem})  # noqa: S102


@pytest.mark.parametrize(("script", "library"), [("sweep_optuna.py", "optuna"), ("sweep_ray.py", "ray.tune")])
def test_a_sweep_runs_where_its_library_is_installed(script, library, tmp_path):
    pytest.importorskip(library)
    (block,) = (block for block in blocks_of(ROOT / "docs/howto/sweep.md") if block.file == script)
    (tmp_path / script).write_text(block.text, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\{.*'hidden': (8|16).*\}$", done.stdout.strip())


def test_every_page_for_users_shows_python_that_runs():
    lists = [
        page for page in PAGES if re.search(r"^```\{(toctree|generated)\}", page.read_text(encoding="utf-8"), re.M)
    ]
    others = [page for page in PAGES if page not in [*lists, *LECTURES]]
    assert [page.name for page in others if not any(map(is_run, blocks_of(page)))] == []


def test_the_readme_loads_a_model_and_attends_in_five_lines_each():
    first, second = (block.text for block in blocks_of(ROOT / "README.md") if block.language == "python")
    assert "regard.load(" in first
    assert "attend(" in second
    for snippet in (first, second):
        assert sum(bool(line.strip()) for line in snippet.splitlines()) == 5


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page):
    for target, _, anchor in re.findall(r"\]\(([^)#\s]*)(#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        path = (page.parent / target) if target else page
        assert path.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            assert anchor in anchors_of(path), f"{name_of(page)} links to {target}#{anchor}"


@pytest.mark.parametrize("page", [*TEXTS, *RECIPES], ids=name_of)
def test_the_files_that_a_page_mentions_exist(page):
    text = "".join(part for part in re.split(r"```.*?```", page.read_text(encoding="utf-8"), flags=re.DOTALL))
    for mentioned in re.findall(r"(?:[\w*{},-]+/)+[\w*-]+\.(?:py|md|toml|png)", text):
        places = (ROOT, ROOT / "docs", ROOT / "src/regard", page.parent)
        assert any(next(place.glob(mentioned), None) for place in places), f"{name_of(page)} mentions {mentioned}"


def commands_of(page: Path) -> list[list[str]]:
    """The commands of regard that a page shows, in blocks and within lines, each as its words."""
    text = page.read_text(encoding="utf-8")
    shells = [block.text for block in blocks_of(page) if block.language in ("sh", "console", "")]
    lines = "\n".join(shells).replace("\\\n", " ")
    inline = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    comments = [line.lstrip("# ") for line in text.splitlines()[:3]] if page.suffix == ".toml" else []
    found = []
    for line in chain(lines.splitlines(), (" ".join(code.split()) for code in inline), comments):
        for part in re.split(r"\||&&|;|, ", line.split(" #")[0]):
            if start := re.search(r"(?:^|[\s/$])regard ([a-z])", part):
                found.append(shlex.split(part[start.start(1) :].replace("`", "").replace("'s ", " ")))
    return found


def options_of(function: typing.Callable[..., object]) -> set[str]:
    """The options of a command, as its signature declares them."""
    names: set[str] = set()
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        metadata = getattr(hint, "__metadata__", ())
        aliases = [each for part in metadata for each in chain(part.name or (), part.alias or ())]
        kinds = typing.get_args(getattr(hint, "__origin__", hint))
        config = next((kind for kind in kinds if hasattr(kind, "check")), None)
        names |= {field.name for field in fields_of(config)} if config else {name}
        names |= {alias.lstrip("-") for alias in aliases}
    return {name.replace("_", "-") for name in names}


def imported(paths: dict[str, str]) -> dict[str, typing.Callable[..., object]]:
    """The functions of commands, by the places that say where they are."""
    return {name: getattr(import_module(path.split(":")[0]), path.split(":")[1]) for name, path in paths.items()}


COMMANDS, DATA_COMMANDS, BENCH_COMMANDS = imported(commands()), imported(DATA), imported(BENCH)


@cache
def recipe_fields() -> set[str]:
    """The fields of recipes of all systems, as "table.field"."""
    tables = [table for each in registry.entries() for table in each.tables.items()]
    return {f"{table}.{field.name}" for table, config in tables for field in fields_of(config)}


def evaluation_options() -> set[str]:
    """The options of `regard evaluate` that depend on the system."""
    fields = chain.from_iterable(fields_of(each.test_set) for each in registry.entries())
    return {"options"} | {field.name.replace("_", "-") for field in fields}


@pytest.mark.parametrize("page", [*TEXTS, *RECIPES], ids=name_of)
def test_the_commands_of_a_page_exist_with_their_options(page):
    for words in commands_of(page):
        shown, table = " ".join(words), COMMANDS
        if words[0] == "data" and len(words) > 1:
            words, table = words[1:], DATA_COMMANDS
        if words[0] == "bench" and words[1:2] == ["train"]:
            words, table = words[1:], BENCH_COMMANDS
        if words == ["data"]:
            continue
        assert words[0] in table, f"{name_of(page)} shows: regard {shown}"
        allowed = options_of(table[words[0]]) | {"help"}
        allowed |= {"train": recipe_fields(), "evaluate": evaluation_options()}.get(words[0], set())
        for option in (word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)):
            assert option.lstrip("-") in allowed, f"{name_of(page)} shows the option {option}: regard {shown}"
        if words[0] == "train" and len(words) > 1 and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", words[1]):
            assert words[1] in recipe_names(), f"{name_of(page)} shows the recipe {words[1]}"


def test_a_command_that_does_not_exist_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Run `regard train babel-en-fr --model.reach 3`:\n\n```sh\nls | regard gess a --b 1 # c\n```\n")
    assert commands_of(page) == [["gess", "a", "--b", "1"], ["train", "babel-en-fr", "--model.reach", "3"]]
    assert "model.reach" not in recipe_fields()
    assert "model.window" in recipe_fields()
    assert {"beam", "show", "model", "m", "nbest"} <= options_of(COMMANDS["translate"])


def test_the_fields_that_inline_options_name_exist():
    """Also where a page shows an option without its command: `--train.soft_fraction`."""
    for page in [*TEXTS, *RECIPES]:
        for field in re.findall(r"--((?:data|model|train)\.[a-z_]+)", page.read_text(encoding="utf-8")):
            assert field in recipe_fields(), f"{name_of(page)} mentions --{field}"


def test_the_api_page_lists_the_public_names():
    import regard

    listed = set(re.findall(r"`(?:regard\.)?(\w+)", (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")))
    assert set(regard.__all__) - {"__version__"} <= listed
    assert not inspect.ismodule(regard.load)


def section_of_api(heading: str) -> str:
    """One section of docs/reference/api.md, up to the next heading."""
    return re.split(
        r"^## ", (ROOT / "docs/reference/api.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1], flags=re.M
    )[0]


def test_the_api_page_lists_every_command():
    assert set(re.findall(r"`regard ([a-z-]+)`", section_of_api("Commands"))) == {*COMMANDS, "data"}


def test_the_api_page_lists_the_test_set_of_every_system():
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*?) \|", section_of_api("Reports"), flags=re.M))
    assert set(rows) == set(registry.SYSTEMS)
    for kind, test_set in rows.items():
        fields = {field.name for field in fields_of(registry.entry(kind).test_set)}
        named = set(re.findall(r"`(\w+)(?:=[^`]*)?`", test_set))
        assert named, kind
        assert named <= fields, f"{kind}: {named - fields}"


def test_the_api_page_lists_every_kind_of_trace():
    rows = dict(re.findall(r"^\| `([a-z]+)` \| `(\w+)", section_of_api("Traces"), flags=re.M))
    assert set(rows) == {"text", "translation"} | set(OWN_VIEWS)
    attending = {each.system.__name__ for each in registry.entries() if each.evidence}
    assert set(rows.values()) == {"Trace"} | attending


def test_the_recipes_page_says_where_the_fields_of_every_system_are_defined():
    rows = re.findall(
        r"^\| ([a-z-]+) (\| `\w+` in `.*)$", (ROOT / "docs/howto/recipes.md").read_text(encoding="utf-8"), flags=re.M
    )
    for kind, row in rows:
        tables = registry.entry(kind).tables.values()
        places = [
            (each.__name__, each.__module__.replace("regard.", "", 1).replace(".", "/") + ".py") for each in tables
        ]
        assert re.findall(r"`(\w+)` in `([^`]+)`", row) == places
    assert {kind for kind, _ in rows} == set(registry.SYSTEMS)
