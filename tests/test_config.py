"""Configs are checked wherever they come from, and a misspelt setting never trains the wrong model."""

import dataclasses
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest

from regard.config import (
    Checked,
    Count,
    Field,
    Fraction,
    Names,
    PositiveFloat,
    PositiveInt,
    Probability,
    custom_parts,
    differing,
    fields_of,
    from_values,
    parse_values,
)
from regard.errors import OptionError, RegardError
from regard.systems import registry
from regard.systems.plan import read_recipe
from regard.systems.translate.config import TranslationConfig
from regard.training.recipes import read_raw, recipe_names, to_toml
from regard.training.settings import TrainSettings


@dataclass(frozen=True)
class Wheel(Checked):
    """A wheel."""

    spokes: PositiveInt = 32
    """Number of spokes,
    counted twice."""
    tilt: Fraction = 0.0
    """Tilt."""


@dataclass(frozen=True)
class Bicycle(Wheel):
    """A bicycle, whose wheels have fewer spokes."""

    spokes: PositiveInt = 24
    colour: Literal["red", "blue"] = "red"
    """Its colour."""
    brake: Annotated[str, Names(("disc", "rim"), prefixes=("shimano:",))] = "rim"
    """Its brake."""
    gears: tuple[int, int] = (3, 7)
    """Chainrings and sprockets."""
    bags: tuple[str, ...] = ()
    """Bags."""
    seat: PositiveFloat | None = None
    """Height of the seat."""
    bell: bool = True
    """Whether there is a bell."""

    def check(self) -> None:
        if self.gears[0] > self.gears[1]:
            raise OptionError("gears must not have more chainrings than sprockets.")


def test_values_are_checked_by_type_choice_and_range():
    assert Bicycle(gears=[2, 9], seat=3).gears == (2, 9)
    assert Bicycle(seat=3).seat == 3.0
    for values, message in [
        ({"spokes": 0}, "spokes must be a whole number, 1 or more; got 0."),
        ({"spokes": 3.0}, "spokes must be a whole number, 1 or more; got 3.0."),
        ({"spokes": True}, "spokes must be a whole number, 1 or more; got True."),
        ({"tilt": 1}, "tilt must be a number, 0 or more and below 1; got 1."),
        ({"tilt": float("nan")}, "got nan."),
        ({"seat": float("inf")}, "got inf."),
        ({"colour": "blu"}, "colour must be one of red, blue; got 'blu'. Did you mean 'blue'?"),
        ({"brake": "disk"}, "or a custom part as package.module:Name; got 'disk'. Did you mean 'disc'?"),
        ({"gears": (1, 2, 3)}, "gears must be a list of 2 whole numbers; got (1, 2, 3)."),
        ({"gears": (9, 2)}, "gears must not have more chainrings than sprockets."),
        ({"bell": "no"}, "bell must be true or false; got 'no'."),
        ({"bags": "one"}, "bags must be a list of text; got 'one'."),
    ]:
        with pytest.raises(OptionError) as raised:
            Bicycle(**values)
        assert message in str(raised.value)
        with pytest.raises(OptionError, match=r"^ride\.toml \[model\]: "):
            from_values(Bicycle, values, "ride.toml [model]")


@pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
def test_defaults_are_valid_as_they_are_since_no_construction_checks_them(entry):
    for config in (entry.options, entry.test_set, *entry.tables.values()):
        for field in fields_of(config):
            if field.default is not dataclasses.MISSING:
                assert repr(field.check(field.default)) == repr(field.default)


def test_replacing_a_field_checks_it():
    with pytest.raises(OptionError, match="spokes must be a whole number"):
        dataclasses.replace(Bicycle(), spokes=-1)


def test_an_unknown_field_suggests_the_nearest():
    with pytest.raises(OptionError, match=r"here: there is no field 'color'. Did you mean 'colour'\?"):
        from_values(Bicycle, {"color": "red"}, "here")
    with pytest.raises(OptionError, match=r"There is no field --model.bels. Did you mean 'bell'\?"):
        parse_values(Bicycle, {"bels": "true"}, "--model.")


def test_texts_of_the_command_line_become_values():
    texts = {"spokes": "12", "gears": "2, 9", "bags": "a,b", "seat": "none", "bell": "false", "brake": "shimano:x"}
    assert parse_values(Bicycle, texts, "--") == {
        "spokes": 12,
        "gears": (2, 9),
        "bags": ("a", "b"),
        "seat": None,
        "bell": False,
        "brake": "shimano:x",
    }
    for texts, message in [
        ({"spokes": "many"}, "--spokes must be a whole number, 1 or more; got 'many'."),
        ({"tilt": "nan"}, "--tilt must be a number, 0 or more and below 1; got nan."),
        ({"bell": "no"}, "--bell must be true or false; got 'no'."),
        ({"gears": "1"}, "--gears must be a list of 2 whole numbers; got '1'."),
    ]:
        with pytest.raises(OptionError) as raised:
            parse_values(Bicycle, texts, "--")
        assert str(raised.value) == message


def test_help_comes_from_the_docstrings_of_fields_inherited_ones_included():
    meanings = {field.name: field.meaning for field in fields_of(Bicycle)}
    assert meanings["spokes"] == "Number of spokes, counted twice."
    assert meanings["bell"] == "Whether there is a bell."
    assert {field.name: field.default for field in fields_of(Bicycle)}["spokes"] == 24


def test_custom_parts_are_told_from_built_in_and_prefixed_names():
    assert custom_parts(Bicycle(brake="my.parts:Drum")) == {"brake": "my.parts:Drum"}
    assert custom_parts(Bicycle(brake="shimano:Drum")) == {}
    assert custom_parts(Bicycle()) == {}
    assert differing(Bicycle(), Bicycle(bell=False)) == {"bell": (True, False)}


def wrong_values(field: Field) -> list[Any]:
    """Values of the wrong type, choice or range for a field."""
    kind, metadata = field.kind, ()
    if get_origin(kind) is Annotated:
        kind, *metadata = get_args(kind)
    if NoneType in get_args(kind):
        kind = next(part for part in get_args(kind) if part is not NoneType)
        if get_origin(kind) is Annotated:
            kind, *metadata = get_args(kind)
    wrong: list[Any] = [{"a": 1}, ["x", "y", "z", 4]]
    if get_origin(kind) is Literal:
        return [*wrong, "no such choice", str(get_args(kind)[0]) + "x", 17, True if kind != Literal[1, 3] else 2]
    if get_origin(kind) is tuple:
        return [["x", "y", "z", 4], {"a": 1}, True, 17]
    if kind is bool:
        return [*wrong, "no", "true", 1, 0, 0.0]
    if kind is str:
        names = [part for part in metadata if isinstance(part, Names)]
        return [*wrong, 5, True, *(["no such name", names[0].choices[0] + "x"] if names else [])]
    numbers: list[Any] = [*wrong, "twenty", True, float("nan"), float("inf")]
    numbers += [2.5] if kind is int else []
    for meta in metadata:
        numbers += [meta.ge - 1] if meta.ge is not None else []
        numbers += [meta.gt, -1] if meta.gt is not None else []
        numbers += [meta.le + 1] if meta.le is not None else []
        numbers += [meta.lt] if meta.lt is not None else []
    return numbers


def tables_of(system: str) -> dict[str, type[Checked]]:
    return registry.entry(system).tables


@pytest.mark.parametrize("name", recipe_names())
def test_a_wrong_value_in_any_field_of_any_recipe_is_a_clear_error(name):
    raw, cases = read_raw(name), 0
    for table, config in tables_of(raw.system).items():
        for field in fields_of(config):
            for value in wrong_values(field):
                with pytest.raises(OptionError) as raised:
                    from_values(config, raw.tables[table] | {field.name: value}, f"{raw.place} [{table}]")
                message = str(raised.value)
                assert message.startswith(f"{raw.place} [{table}]: {field.name} must be "), message
                assert "; got " in message
                cases += 1
    assert cases > 200


@pytest.mark.parametrize("system", registry.SYSTEMS)
def test_a_wrong_value_in_a_file_is_a_clear_error(system, tmp_path):
    path = tmp_path / "recipe.toml"
    for table, config in tables_of(system).items():
        for field in fields_of(config):
            for value in wrong_values(field)[-1:]:
                path.write_text(to_toml({"system": system, table: {field.name: value}}), encoding="utf-8")
                with pytest.raises(OptionError) as raised:
                    read_recipe(path)
                assert str(raised.value).startswith(f"{path} [{table}]: {field.name} must be ")


@pytest.mark.parametrize("system", registry.SYSTEMS)
def test_a_wrong_value_in_any_override_is_a_clear_error(system):
    for table, config in tables_of(system).items():
        for field in fields_of(config):
            for value in wrong_values(field):
                if isinstance(value, dict | list) or (
                    isinstance(value, bool | int | float) and "text" in field.allowed
                ):
                    continue  # texts of the command line cannot be these
                if isinstance(value, int) and field.allowed == "a list of whole numbers":
                    continue  # one number is a list of one
                if isinstance(value, bool) or (value in (0, 1, "true") and field.allowed == "true or false"):
                    continue
                with pytest.raises(OptionError, match=f"--{table}.{field.name}"):
                    parse_values(config, {field.name: str(value)}, f"--{table}.")


def test_a_misspelt_key_table_or_system_is_a_clear_error(tmp_path):
    for text, message in [
        ("[model]\narchitectur = 'luong'\n", "there is no field 'architectur'. Did you mean 'architecture'?"),
        ("[modle]\nlayers = 1\n", "got 'modle'. Did you mean 'model'?"),
        ("system = 'translater'\n", "got 'translater'. Did you mean 'translate'?"),
        ("system = 5\n", "system must be text"),
        ("model = 3\n", "got 'model'."),
        ("[model]\nlayers = \n", "is not a recipe"),
    ]:
        path = tmp_path / "r.toml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(RegardError) as raised:
            read_recipe(path)
        assert message in str(raised.value)
        assert str(path) in str(raised.value)
    with pytest.raises(RegardError, match=r"Did you mean 'babel-en-fr'\?"):
        read_recipe("babel-en-f")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"architecture": "rnnsearch", "layers": 5}, "rnnsearch has one layer; got layers 5"),
        ({"architecture": "transformer", "embedding": 30}, "embedding must be a multiple of heads"),
        ({"architecture": "luong", "score": "dot"}, "score 'dot' needs encoder and decoder states of one size"),
        ({"architecture": "plain", "score": "dot"}, "score is for the architecture rnnsearch or luong"),
        ({"architecture": "transformer", "coverage": True}, "coverage is for the architecture rnnsearch or luong"),
        ({"architecture": "luong", "conditional": True}, "conditional is for the architecture rnnsearch"),
    ],
)
def test_settings_that_would_be_ignored_or_do_not_fit_are_refused(values, message):
    with pytest.raises(OptionError) as raised:
        TranslationConfig(**values)
    assert message in str(raised.value)


def test_counts_and_probabilities_accept_their_ends():
    @dataclass(frozen=True)
    class Ends(Checked):
        """Ends."""

        count: Count = 0
        """Count."""
        chance: Probability = 1.0
        """Chance."""

    assert Ends(count=0, chance=0).chance == 0.0
    assert Ends(chance=1).chance == 1.0


def test_a_large_limit_is_written_out():
    (seed,) = (field for field in fields_of(TrainSettings) if field.name == "seed")
    assert seed.allowed == "a whole number from 0 to 4294967295"
