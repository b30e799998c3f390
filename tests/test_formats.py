"""What an earlier minor version wrote and offered still works, as docs/concepts/compatibility.md promises."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from helpers.traces import KINDS

import regard
from regard.errors import RegardError
from regard.systems.plan import read_recipe
from regard.trace import Trace
from regard.trace.trace import VERSION

FORMATS = Path(__file__).parent / "formats"
sys.path.insert(0, str(FORMATS))
from record import asked, routes  # noqa: E402

VERSIONS = sorted(path.name for path in FORMATS.glob("*.*") if path.is_dir())
MODELS = sorted(path for version in VERSIONS for path in (FORMATS / version / "models").iterdir())
RECIPES = sorted(path for version in VERSIONS for path in (FORMATS / version / "recipes").iterdir())
TRACES = sorted(FORMATS.glob("traces-*.json"))

pytestmark = pytest.mark.usefixtures("as_a_user")


def name_of(path: Path) -> str:
    return f"{path.parent.parent.name} {path.stem}"


def test_this_minor_version_has_its_fixtures():
    assert regard.__version__.rpartition(".")[0] in VERSIONS, "python tests/formats/record.py"
    assert FORMATS / f"traces-{VERSION}.json" in TRACES


@pytest.mark.parametrize("folder", MODELS, ids=name_of)
def test_a_model_folder_of_an_earlier_version_is_loaded_answers_the_same_and_can_be_saved(folder, tmp_path):
    model = regard.load(folder, device="cpu")
    expected = json.loads((folder.parent.parent / "answers.json").read_text(encoding="utf-8"))[folder.name]
    assert asked(model, folder.name).items() >= expected.items()
    assert model.metrics == {"score": 0.5}
    model.save(tmp_path / "again")
    assert asked(regard.load(tmp_path / "again", device="cpu"), folder.name).items() >= expected.items()


@pytest.mark.parametrize("path", RECIPES, ids=name_of)
def test_a_recipe_of_an_earlier_version_is_read_and_means_the_same(path):
    recipe = read_recipe(path)
    assert recipe.system == path.stem
    written = {line.partition(" = ")[0] for line in path.read_text(encoding="utf-8").splitlines() if " = " in line}
    known = {name for table in recipe.to_dict().values() if isinstance(table, dict) for name in table}
    assert written - {"system"} <= known


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_a_trace_of_every_version_is_read_and_equals_that_of_this_one(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored
    for name, fields in stored.items():
        assert f"traces-{fields['version']}" == path.stem
        assert Trace.from_dict(fields) == Trace.from_json(KINDS[name]().to_json()), name


@pytest.mark.parametrize("version", VERSIONS)
def test_every_route_still_takes_and_answers_what_it_did(version):
    now = routes()
    before = json.loads((FORMATS / version / "routes.json").read_text(encoding="utf-8"))
    for route, fields in before.items():
        assert route in now, f"{route} is gone"
        assert set(fields["request"]) <= set(now[route]["request"]), f"{route} takes less"
        assert set(now[route]["required"]) <= set(fields["required"]), f"{route} asks for more"
        assert set(fields["answer"]) <= set(now[route]["answer"]), f"{route} answers less"


@pytest.fixture
def run(request, tmp_path):
    """A copy of an interrupted run of an earlier version, with its data."""
    shutil.copytree(FORMATS / request.param / "run", tmp_path / "run")
    shutil.copy(FORMATS / request.param / "pairs.tsv", tmp_path)
    return tmp_path / "run"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("run", VERSIONS, indirect=True)
def test_a_run_of_an_earlier_version_is_loaded_and_resumed(run):
    assert asked(regard.load(run / "checkpoints" / "best.ckpt", device="cpu"), "translate")["text"]

    data = {"pairs": str(run.parent / "pairs.tsv")}
    trained = regard.train(out=run, resume=True, data=data, train={"epochs": 3}, progress=False)
    assert (trained.metrics["epochs"], trained.metrics["steps"]) == (3, 12)


def test_a_trace_of_a_later_version_is_refused_with_the_versions_that_are_read():
    with pytest.raises(RegardError, match=f"version {VERSION + 1}.*reads versions 2 and {VERSION}"):
        Trace.from_dict(KINDS["translation"]().to_dict() | {"version": VERSION + 1})
