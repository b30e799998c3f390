"""Recipes: read from files, checked against their system, and written so that they can be read again."""

import pytest
from helpers.recipes import small_version

from regard.config import fields_of, parse_values
from regard.errors import DataError, OptionError
from regard.systems import registry
from regard.systems.plan import check_recipe, read_recipe
from regard.training.recipes import (
    RawRecipe,
    find_recipe,
    read_raw,
    recipe_names,
    recipe_summary,
    recipe_toml,
    with_values,
)


def write(folder, text: str):
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    return folder / "recipe.toml"


@pytest.mark.parametrize("name", recipe_names())
def test_every_packaged_recipe_is_read_says_what_it_trains_and_survives_a_file(name, tmp_path):
    recipe = read_recipe(name)
    assert recipe_summary(name).endswith("."), name
    again = read_recipe(write(tmp_path, recipe_toml(recipe)))
    assert (again.system, again.data, again.model, again.train) == (
        recipe.system,
        recipe.data,
        recipe.model,
        recipe.train,
    )
    assert recipe.given <= again.given == {field.name for field in fields_of(type(recipe.model))}


@pytest.mark.parametrize("name", recipe_names())
def test_every_packaged_recipe_has_a_small_version_that_make_soak_trains_twice(name, tmp_path):
    recipe, small = read_recipe(name), small_version(name, tmp_path)
    assert small.system == recipe.system
    assert getattr(small.model, "architecture", None) == getattr(recipe.model, "architecture", None)
    assert small.train.epochs == 2


def test_there_are_recipes_of_every_system():
    assert {read_raw(name).system for name in recipe_names()} == set(registry.SYSTEMS)
    assert len(recipe_names()) >= 6


def test_every_field_of_every_system_is_explained():
    for each in registry.entries():
        for table in each.tables.values():
            for field in fields_of(table):
                assert field.meaning.endswith("."), f"{each.name} {table.__name__}.{field.name}"


def test_a_recipe_says_which_system_it_trains(tmp_path):
    assert read_recipe("mnist-lenet").system == read_recipe("cifar-vgg").system == "recognize"
    assert read_recipe("babel-en-fr").system == read_recipe(None).system == "translate"
    with pytest.raises(OptionError, match=r"one of translate, caption, recognize.*; got 'oracle'"):
        read_recipe(write(tmp_path, 'system = "oracle"\n'))
    with pytest.raises(OptionError, match="system must be text, such as 'translate'; got 3"):
        read_recipe(write(tmp_path, "system = 3\n"))


def test_overrides_have_the_types_of_their_fields():
    tables = registry.entry("translate").tables
    assert parse_values(tables["model"], {"score": "dot"}, "--model.") == {"score": "dot"}
    given = {"epochs": "5", "learning-rate": "1e-3"}
    assert parse_values(tables["train"], given, "--train.") == {"epochs": 5, "learning_rate": 0.001}
    assert parse_values(tables["data"], {"joint": "false"}, "--data.") == {"joint": False}
    images = registry.entry("recognize").tables["train"]
    assert parse_values(images, {"batch_size": "7", "flip": "true"}, "--train.") == {"batch_size": 7, "flip": True}


@pytest.mark.parametrize(
    ("table", "given", "says"),
    [
        ("model", {"scor": "dot"}, "no field --model.scor. Did you mean 'score'"),
        ("model", {"score": "dott"}, "--model.score must be one of additive, .*; got 'dott'. Did you mean 'dot'"),
        ("train", {"epochs": "many"}, "--train.epochs must be a whole number, 1 or more; got 'many'"),
        ("train", {"epochs": "0"}, "--train.epochs must be a whole number, 1 or more; got 0"),
        ("data", {"joint": "maybe"}, "--data.joint must be true or false; got 'maybe'"),
    ],
)
def test_wrong_overrides_are_explained(table, given, says):
    with pytest.raises(OptionError, match=says):
        parse_values(registry.entry("translate").tables[table], given, f"--{table}.")


def test_overrides_replace_fields_and_only_those_of_the_three_tables():
    raw = RawRecipe(tables={"data": {}, "model": {"hidden": 5, "cell": "lstm"}, "train": {}})
    replaced = with_values(raw, {"model": {"hidden": 7}, "train": {"epochs": 2}})
    assert replaced.tables == {"data": {}, "model": {"hidden": 7, "cell": "lstm"}, "train": {"epochs": 2}}
    assert raw.tables["model"]["hidden"] == 5, "the recipe itself is left as it was"
    assert check_recipe(replaced).given == {"hidden", "cell"}
    with pytest.raises(OptionError, match=r"--data\.NAME, --model\.NAME or --train\.NAME; got --training"):
        with_values(raw, {"training": {"epochs": "5"}})


def test_wrong_recipes_are_explained(tmp_path):
    with pytest.raises(DataError, match="nor a packaged recipe"):
        read_recipe("nothing")
    with pytest.raises(DataError, match="Did you mean 'babel-en-fr'"):
        find_recipe("babel-en-rf")
    with pytest.raises(OptionError, match=r"recipe\.toml \[train\]: there is no field 'epoch'. Did you mean 'epochs'"):
        read_recipe(write(tmp_path, "[train]\nepoch = 3\n"))
    with pytest.raises(OptionError, match=r"has the tables \[data\], \[model\] and \[train\]; got 'training'"):
        read_recipe(write(tmp_path, "[training]\nepochs = 3\n"))
    with pytest.raises(OptionError, match="got 'train'"):
        read_recipe(write(tmp_path, "train = 3\n"))
    with pytest.raises(DataError, match="not a recipe"):
        read_recipe(write(tmp_path, "[train"))
    (tmp_path / "recipe.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a recipe"):
        read_recipe(tmp_path / "recipe.toml")
