"""A new system is its own folder plus one line in one table; everything else works with it without being edited.

The system of `helpers/picker` picks the largest of some numbers by attention: a score of each number, a softmax over
them, and the weighted average of the numbers.
"""

import json
from typing import Any

import pytest
from helpers.picker.inspection import without
from helpers.picker.model import Picker
from starlette.testclient import TestClient

import regard
from regard.cli import main
from regard.errors import ModelError, OptionError
from regard.serving.app import create_app
from regard.systems.registry import MODULES, entry


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "pick", "helpers.picker")  # the one line


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MODULES, "pick", "helpers.picker")
        folder = tmp_path_factory.mktemp("picker")
        (folder / "recipe.toml").write_text('system = "pick"\n[train]\nepochs = 12\nlearning_rate = 0.1\n')
        return regard.train(folder / "recipe.toml", out=folder / "run", model={"hidden": 11}, progress=False)


def run(*tokens: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(tokens))
    return int(ended.value.code or 0)


def test_its_kind_is_the_name_of_the_system(monkeypatch):
    monkeypatch.setitem(MODULES, "choose", "helpers.picker")
    with pytest.raises(TypeError, match=r"Picker\.kind must be 'choose', the name of its system; got 'pick'"):
        _ = entry("choose").system


def test_it_trains_and_is_saved_with_its_assets(trained):
    assert trained.metrics["test_error"] < 0.3
    stored = json.loads((trained.folder / "config.json").read_text())
    assert stored["system"] == "pick"
    assert stored["config"] == {"hidden": 11}
    assert json.loads((trained.folder / stored["assets"]["units"]).read_text()) == ["metres"]


def test_it_is_loaded_by_its_folder_and_answers_one_or_many(trained):
    model = regard.load(trained.folder)
    assert isinstance(model, Picker)
    one = model.pick([1.0, 3.0, 2.0])
    assert one.value == pytest.approx(3.0, abs=0.5)
    assert model.pick([[1.0, 3.0, 2.0], [0.0, -1.0]])[0].value == one.value
    assert [each.value for each in model.stream(iter([[1.0, 3.0, 2.0]] * 3), read_ahead=2)] == [one.value] * 3
    assert regard.view(one).figure() is not None
    with pytest.raises(ModelError, match="pick model, not a translate model"):
        regard.Translator.load(trained.folder)


def test_it_is_evaluated(trained):
    report = regard.evaluate(trained.folder, count=20)
    assert report["mean error"] < 0.3
    with pytest.raises(OptionError, match=r"there is no field 'cuont'. Did you mean 'count'\?"):
        regard.evaluate(trained.folder, cuont=20)


def test_its_configs_are_checked(tmp_path):
    with pytest.raises(OptionError, match=r"hidden must be a whole number, 1 or more; got 0"):
        regard.train(None, out=tmp_path, model={"hidden": 0})
    (tmp_path / "bad.toml").write_text('system = "pick"\n[data]\nexamples = "many"\n')
    with pytest.raises(OptionError, match=r"bad.toml \[data\]: examples must be a whole number, 1 or more; got 'many'"):
        regard.train(tmp_path / "bad.toml", out=tmp_path / "run")


def test_the_command_line_trains_evaluates_and_calls_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picker.toml").write_text('system = "pick"\n[train]\nepochs = 12\nlearning_rate = 0.1\n')
    assert run("train", "picker.toml", "--out", "run", "--data.unit", "miles") == 0
    assert "Try it: regard pick --model run/model 1 2 3" in capsys.readouterr().out
    assert run("evaluate", "run", "--count", "20", "--json") == 0
    assert json.loads(capsys.readouterr().out)["scores"]["mean error"]["note"] == "miles"
    assert run("pick", "--model", "run/model", "1", "3", "2", "--digits", "1") == 0
    assert capsys.readouterr().out.strip().endswith("miles")
    assert run("pick", "--model", "run", "1", "3", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["trace"]["version"] == 3
    (tmp_path / "lines.txt").write_text("1 3 2\n\n0 4\n")
    assert run("pick", "--model", "run", "--input", "lines.txt", "--show", "-") == 0
    assert capsys.readouterr().out.count("miles") == 2
    assert run("pick", "--model", "run", "--input", "lines.txt", "--output", "out/", "--workers", "1") == 0
    first, blank, last = (tmp_path / "out" / "lines.txt").read_text().splitlines()
    assert (first.endswith("miles"), blank, last.endswith("miles")) == (True, "", True), "a job keeps the lines"
    capsys.readouterr()
    assert run("pick", "--model", "run", "1", "2", "--show", "pick.html") == 0
    assert "largest" in (tmp_path / "pick.html").read_text()
    assert run("pick", "1") == 2
    assert "model" in capsys.readouterr().err
    assert run("pick", "--help") == 0
    assert "Pick the largest of some numbers." in capsys.readouterr().out
    assert run("recipes", "--fields", "pick") == 0
    assert "--data.unit" in capsys.readouterr().out
    assert run("pick", "--model", "run", "1", "--digits", "0") == 2
    assert "digits must be a whole number, 1 or more; got 0" in capsys.readouterr().err


def test_its_attention_is_measured(trained):
    found = regard.faithfulness(regard.load(trained.folder), [1.0, 3.0, 2.0])
    assert found.parts == "numbers"
    assert found.ablation.unit == "metres"
    assert found.ablation.attended > found.ablation.random, "without the largest number, another one is picked"


def test_its_page_is_served_from_its_folder(trained):
    with TestClient(create_app(folders=[str(trained.folder)]), base_url="http://localhost") as client:
        (model,) = (each for each in client.get("/v1/models").json()["models"] if each["verb"] == "pick")
        assert model["headline"].startswith("error ")
        (listed,) = (each for each in client.get("/v1/systems").json()["systems"] if each["name"] == "pick")
        assert listed["summary"] == "Pick the largest of some numbers."
        page = client.get(listed["page"])
        assert page.headers["content-type"].startswith("text/javascript")
        assert "export default class PickPage" in page.text
        assert client.get("/pick").text == client.get("/").text, "the shell, which loads the module of the page"


def test_the_server_has_its_verb_endpoints_examples_and_faithfulness(trained):
    model = regard.load(trained.folder)
    with TestClient(create_app(folders=[str(trained.folder)]), base_url="http://localhost") as client:

        def post(path, **body):
            answer = client.post(f"/v1/{path}", json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        numbers, name = [1.0, 3.0, 2.0], trained.folder.name
        found = post("pick", input=[numbers, [0.0, -1.0]], trace=True, options={"digits": 3})
        assert [each["value"] for each in found["results"]] == [
            pytest.approx(each.value, abs=1e-3) for each in model.pick([numbers, [0.0, -1.0]], digits=3)
        ]
        assert found["results"][0]["trace"]["version"] == 3
        assert post("pick", input=numbers)["results"][0]["trace"] is None
        assert post("pick/without", input=numbers, index=1) == {
            "model": name,
            "value": without(model, numbers, 1).value,
        }
        assert client.get("/v1/pick/examples").json() == {"examples": [{"numbers": numbers}]}
        measured = post("faithfulness", verb="pick", input=numbers)
        assert measured["ablation"]["attended"] > measured["ablation"]["random"]
        document = client.get("/openapi.json").json()["components"]["schemas"]
        for each in ("PickRequest", "PickWithoutRequest"):
            (example,) = document[each]["examples"]
            path = "pick" if each == "PickRequest" else "pick/without"
            assert client.post(f"/v1/{path}", json=example).status_code == 200
        refused = client.post("/v1/pick", json={"input": numbers, "options": {"digits": 0}})
        assert "options.digits: Input should be greater than or equal to 1" in refused.json()["error"]["message"]
