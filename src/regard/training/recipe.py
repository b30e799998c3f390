"""Recipes: one complete experiment each, as TOML with the tables [data], [model] and [train]."""

import ast
import dataclasses
import inspect
import itertools
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from regard.errors import DataError, OptionError
from regard.systems.folder import from_fields
from regard.systems.translator import TranslatorConfig
from regard.training.caption_recipe import CAPTION_TABLES, CaptionRecipe
from regard.training.image_recipe import IMAGE_TABLES, ImageRecipe

RECIPES = Path(__file__).parent.parent / "recipes"


@dataclass(frozen=True)
class DataConfig:
    """What to learn from."""

    folder: str = "."
    """Folder that the other paths are relative to."""
    source: str = ""
    """Source sentences, one a line (plain, .gz, .xz or .zip)."""
    target: str = ""
    """Target sentences, line by line parallel to the source."""
    pairs: str = ""
    """Or both in one file: source<TAB>target."""
    columns: tuple[int, int] = (0, 1)
    """The columns of `pairs` that hold source and target."""
    dataset: str = ""
    """Or a Hugging Face dataset: NAME or NAME:CONFIGURATION of the hub, or a file or folder of one."""
    dataset_columns: tuple[str, str] = ("source", "target")
    """The columns of `dataset` that hold source and target, or the languages in its translation column."""
    dataset_split: str = "train"
    """The split of `dataset` to train on."""
    dataset_valid: str = ""
    """Its split to validate with; without one, a part of the training pairs is held out."""
    dataset_test: str = ""
    """Its split to test with."""
    world: str = ""
    """Or a generated world and direction, e.g. "babel:en-fr"."""
    examples: int = 50_000
    """How many pairs of a world to generate."""
    max_words: int = 20
    """Longest source sentence of a world, in words."""
    valid_source: str = ""
    """Validation sentences; without them, a part of the training pairs is held out."""
    valid_target: str = ""
    """Their translations."""
    held_out: int = 1000
    """How many training sentences are held out where there are no validation files, with all their translations."""
    test_source: str = ""
    """Test sentences, translated with a beam at the end."""
    test_target: str = ""
    """Their translations."""
    held_out_test: int = 0
    """How many more training sentences are held out for a test, where there are no test files."""
    tokens: Literal["bpe", "word"] = "bpe"
    """Pieces of words, or whole words."""
    vocabulary: int = 8000
    """Size of the vocabulary, of each side or of both."""
    joint: bool = True
    """One vocabulary for both sides."""
    lowercase: bool = False
    """Write everything in lower case."""
    bpe_dropout: float = 0.0
    """Share of merges left out at random in training."""
    max_length: int = 200
    """Longest sentence in tokens; longer pairs are left out and counted."""


@dataclass(frozen=True)
class TrainConfig:
    """How to learn."""

    epochs: int = 20
    """Most passes over the data."""
    minutes: float = 0.0
    """Most time, 0 for any; the step size then falls with the time, so that training ends well where it ends."""
    max_tokens: int = 4096
    """Tokens in a batch, padding counted."""
    learning_rate: float = 1e-3
    """The highest step size."""
    schedule: Literal["one_cycle", "inverse_sqrt", "constant", "plateau"] = "one_cycle"
    """How the step size rises and falls; plateau: halved after each validation without a better BLEU, down to 1 %."""
    warmup: float = 0.1
    """Share of the steps in which the step size rises."""
    label_smoothing: float = 0.1
    """Probability given to all other words."""
    clip: float = 1.0
    """Largest norm of the gradients."""
    weight_decay: float = 0.0
    """Decay of the weights."""
    average: float = 0.0
    """Decay of the running average of the weights that is evaluated and kept; 0 for none. 0.999 suits most."""
    validate_every: int = 1
    """Epochs between validations, which decode the validation sentences."""
    checkpoint_minutes: float = 30.0
    """Minutes between checkpoints within an epoch, for --resume; 0 for only one after each epoch."""
    patience: int = 0
    """Validations without a better BLEU before training ends; 0 for no early end."""
    valid_beam: int = 1
    """Beam of these validations."""
    max_output: int = 0
    """Longest output in pieces, when validating and testing; 0 for twice the source and ten more."""
    reward: float = 1.0
    """Hard attention: weight of the REINFORCE term."""
    entropy: float = 0.01
    """Hard attention: weight of the entropy bonus."""
    soft: float = 0.5
    """Hard attention: share of the training in which it still is soft, so that its first choices are worth a reward."""
    overlap: float = 0.0
    """Coverage: weight of the loss for attending again to what was attended to (See et al. 2017, equation 12)."""
    workers: int = -1
    """Processes that prepare batches; 0 for none, -1 for two where a GPU would wait for BPE dropout."""
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed"] = "auto"
    """auto: bfloat16 for a Transformer on a GPU, float32 otherwise."""
    seed: int = 1
    """Decides everything that is random."""


@dataclass(frozen=True)
class Recipe:
    """A whole experiment."""

    data: DataConfig = field(default_factory=DataConfig)
    model: TranslatorConfig = field(default_factory=TranslatorConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


TABLES: dict[str, type] = {"data": DataConfig, "model": TranslatorConfig, "train": TrainConfig}
"""The tables of a recipe for a translator."""
SYSTEMS: dict[str, tuple[type, dict[str, type]]] = {
    "translator": (Recipe, TABLES),
    "image-classifier": (ImageRecipe, IMAGE_TABLES),
    "captioner": (CaptionRecipe, CAPTION_TABLES),
}
"""What recipes can train, as the line `system = ...` of a recipe names it, with their tables."""


def read_recipe(name: str | Path | None, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Any:
    """A recipe from a TOML file or by the name of a packaged one; `overrides` replaces fields of its tables.

    It is the Recipe of a translator, or what else its line `system = ...` says.
    """
    system, tables = _read(name)
    place = "the command line" if name is None else str(_find(name))
    for table, values in (overrides or {}).items():
        tables[table].update(values)
    recipe, kinds = SYSTEMS[system]
    return recipe(**{table: from_fields(kind, tables[table], f"{place} [{table}]") for table, kind in kinds.items()})


def recipe_system(name: str | Path | None) -> str:
    """What a recipe trains: a translator, if it does not say."""
    return _read(name)[0]


def _read(name: str | Path | None) -> tuple[str, dict[str, dict[str, Any]]]:
    tables: dict[str, dict[str, Any]] = {"data": {}, "model": {}, "train": {}}
    if name is None:
        return "translator", tables
    path = _find(name)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a recipe: {error}.") from error
    system = given.pop("system", "translator")
    if system not in SYSTEMS:
        raise OptionError(f"{path}: a recipe's system is one of {', '.join(SYSTEMS)}; got {system!r}.")
    for table, values in given.items():
        if table not in tables or not isinstance(values, dict):
            raise OptionError(f"{path}: a recipe has the tables [data], [model] and [train]; got {table!r}.")
        tables[table].update(values)
    return system, tables


def recipe_names() -> list[str]:
    """The names of the packaged recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def recipe_summary(name: str) -> str:
    """What a recipe trains: its first line."""
    return _find(name).read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def _find(name: str | Path) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    if (RECIPES / f"{name}.toml").is_file():
        return RECIPES / f"{name}.toml"
    raise DataError(f"There is no recipe file {str(name)!r}, nor a packaged recipe of that name: {recipe_names()}.")


def read_overrides(given: Mapping[str, Mapping[str, str]], system: str = "translator") -> dict[str, dict[str, Any]]:
    """Overrides of the command line, {"model": {"score": "dot"}}, as values of the fields' types."""
    tables = SYSTEMS[system][1]
    overrides: dict[str, dict[str, Any]] = {}
    for table, texts in given.items():
        if table not in tables:
            raise OptionError(f"A field is set with --data.NAME, --model.NAME or --train.NAME; got --{table}.")
        known = get_type_hints(tables[table])
        for key, text in texts.items():
            name = key.replace("-", "_")
            if name not in known:
                from_fields(tables[table], {name: text}, f"--{table}.{key}")  # says what is near
            overrides.setdefault(table, {})[name] = _parsed(text, known[name], f"--{table}.{key}")
    return overrides


def fields_of(table: str, system: str = "translator") -> list[tuple[str, str, object, str]]:
    """The fields of [data], [model] or [train]: name, type, default, and what it means."""
    config = SYSTEMS[system][1][table]
    meanings = _docstrings(config)
    kinds = get_type_hints(config)
    return [
        (part.name, getattr(kinds[part.name], "__name__", str(kinds[part.name])), part.default, meanings[part.name])
        for part in dataclasses.fields(config)
    ]


def _parsed(text: str, kind: Any, place: str) -> Any:
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise OptionError(f"{place} is one of {', '.join(map(str, get_args(kind)))}; got {text!r}.")
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise OptionError(f"{place} is true or false; got {text!r}.")
        return text.lower() == "true"
    try:
        if get_origin(kind) is tuple:
            return tuple(get_args(kind)[0](part) for part in text.split(","))
        return kind(text)
    except ValueError:
        raise OptionError(f"{place} is of type {kind.__name__}; got {text!r}.") from None


def _docstrings(config: type) -> dict[str, str]:
    """The string below each field of a dataclass."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(config))).body
    found: dict[str, str] = {}
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    for statement, after in itertools.pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            value = after.value if isinstance(after, ast.Expr) else None
            found[statement.target.id] = str(value.value) if isinstance(value, ast.Constant) else ""
    return found
