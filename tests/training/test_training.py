"""Training: every architecture overfits ten examples, recipes are read, data is split and refused."""

import os

import pytest
import torch

from regard.data.pairs import TextPairs, collate
from regard.data.tokenizer import Tokenizer
from regard.errors import DataError, OptionError
from regard.systems.translator import Translator, TranslatorConfig
from regard.training.material import read_data
from regard.training.recipe import TABLES, fields_of, read_overrides, read_recipe, recipe_names, recipe_summary
from regard.training.run import train
from regard.training.task import Plateau, step_size
from regard.training.translation import TranslationTask

# Lightning's own use of torch; and workers, which ten sentences do not need.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")

TEN = [
    ("one dog", "ein Hund"),
    ("two dogs", "zwei Hunde"),
    ("a red house", "ein rotes Haus"),
    ("the sky is blue", "der Himmel ist blau"),
    ("she sleeps", "sie schläft"),
    ("he is eating bread", "er isst Brot"),
    ("we see a tree", "wir sehen einen Baum"),
    ("good night", "gute Nacht"),
    ("the child laughs", "das Kind lacht"),
    ("I do not know", "ich weiß es nicht"),
]
ARCHITECTURES = {
    "plain": {"architecture": "plain"},
    "rnnsearch": {},
    "conditional": {"conditional": True},
    "luong": {"architecture": "luong", "cell": "lstm", "score": "general"},
    "local_p": {"architecture": "luong", "align": "local_p", "score": "general", "reach": 3},
    "coverage": {"coverage": True},
    "hard": {"align": "hard"},
    "transformer": {"architecture": "transformer", "layers": 1, "heads": 2, "inner": 64},
}


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_overfits_ten_examples(kind):
    tokenizer = Tokenizer.train([text for pair in TEN for text in pair], size=120, minimum_count=1)
    config = TranslatorConfig(embedding=32, hidden=32, dropout=0.0, output_dropout=0.0, **ARCHITECTURES[kind])
    model = Translator(config, tokenizer, tokenizer)
    recipe = read_recipe(None, {"train": {"label_smoothing": 0.0, "overlap": 0.1}})
    task = TranslationTask(model, recipe.train, total_steps=1000)
    batch = collate(TextPairs(TEN, tokenizer, tokenizer).__getitems__(range(10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150 if kind != "hard" else 400):
        loss, _, _ = task._loss(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    said = [found[0].text for found in model.translate([source for source, _ in TEN], beam=2)]
    right = sum(text == target for text, (_, target) in zip(said, TEN, strict=True))
    assert right >= (10 if kind != "hard" else 8), said


@pytest.mark.filterwarnings("ignore:.*self.log.*")
def test_hard_attention_is_soft_for_a_share_of_the_training():
    tokenizer = Tokenizer.train([text for pair in TEN for text in pair], size=120, minimum_count=1)
    model = Translator(TranslatorConfig(embedding=8, hidden=8, align="hard"), tokenizer, tokenizer)
    recipe = read_recipe(None, {"train": {"soft": 0.25}})
    task = TranslationTask(model, recipe.train, total_steps=8)
    assert [task.is_soft(step) for step in range(8)] == [True, False, False, False, False, False, False, False]
    batch = collate(TextPairs(TEN, tokenizer, tokenizer).__getitems__(range(10)))
    task.training_step(batch, 0)
    assert task.baseline == 0, "no choice, no reward"


def write(folder, name, lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder / name)


def test_two_text_files_become_a_model(tmp_path):
    source = write(tmp_path, "a.txt", [source for source, _ in TEN] * 3)
    target = write(tmp_path, "b.txt", [target for _, target in TEN] * 3)
    recipe = read_recipe(
        None,
        {
            "data": {"source": source, "target": target, "vocabulary": 120, "held_out_test": 1},
            "model": {"embedding": 8, "hidden": 8},
            "train": {"epochs": 2, "average": 0.9, "max_tokens": 60, "max_output": 2},
        },
    )
    trained = train(recipe, tmp_path / "run", progress=False)
    assert trained.metrics["epochs"] == 2
    assert {"valid_bleu", "test_bleu"} <= set(trained.metrics)
    said = (tmp_path / "run" / "test.tsv").read_text().split("\t")[2]
    assert len(trained.model.target_tokenizer.encode(said)) <= 2, "max_output"
    loaded = Translator.load(trained.folder, device="cpu")
    assert loaded.translate(["one dog"])[0][0].text == trained.model.to("cpu").translate(["one dog"])[0][0].text
    assert (tmp_path / "run" / "logs" / "metrics.csv").is_file()
    again = train(recipe, tmp_path / "tuned", start_from=loaded, progress=False)
    assert again.model.source_tokenizer.vocabulary_hash == loaded.source_tokenizer.vocabulary_hash


def test_training_twice_gives_the_same_model_with_workers_too(tmp_path):
    pairs = [f"{source}\t{target}" for source, target in TEN]
    data = {"pairs": write(tmp_path, "pairs.tsv", pairs), "vocabulary": 120}

    def weights(name, workers):
        overrides = {
            "data": data,
            "model": {"embedding": 8, "hidden": 8},
            "train": {"epochs": 2, "max_tokens": 30, "workers": workers},
        }
        return train(read_recipe(None, overrides), tmp_path / name, progress=False).model.state_dict()

    first, *others = weights("one", 0), weights("two", 0), weights("three", 1)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)
    assert "TOKENIZERS_PARALLELISM" not in os.environ


def test_every_packaged_recipe_can_be_read_and_says_what_it_trains():
    assert len(recipe_names()) >= 6
    for name in recipe_names():
        assert read_recipe(name).model
        assert recipe_summary(name).endswith("."), name


def test_every_field_is_explained():
    for table in TABLES:
        for name, _, _, meaning in fields_of(table):
            assert meaning.endswith("."), f"{table}.{name}"


def test_overrides_have_the_types_of_their_fields():
    given = {
        "model": {"score": "dot"},
        "train": {"epochs": "5", "learning-rate": "1e-3"},
        "data": {"joint": "false"},
    }
    assert read_overrides(given) == {
        "model": {"score": "dot"},
        "train": {"epochs": 5, "learning_rate": 0.001},
        "data": {"joint": False},
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": {"scor": "dot"}}, "no field 'scor'. Did you mean 'score'"),
        ({"model": {"score": "dott"}}, "--model.score is one of additive, .*; got 'dott'"),
        ({"train": {"epochs": "many"}}, "--train.epochs is of type int; got 'many'"),
        ({"data": {"joint": "maybe"}}, "true or false; got 'maybe'"),
        ({"training": {"epochs": "5"}}, "--data.NAME, --model.NAME or --train.NAME; got --training"),
    ],
)
def test_wrong_overrides_are_explained(given, says):
    with pytest.raises(OptionError, match=says):
        read_overrides(given)


def test_wrong_recipes_are_explained(tmp_path):
    with pytest.raises(DataError, match="nor a packaged recipe"):
        read_recipe("nothing")
    with pytest.raises(OptionError, match="Did you mean 'epochs'"):
        read_recipe(write(tmp_path, "r.toml", ["[train]", "epoch = 3"]))
    with pytest.raises(OptionError, match="tables"):
        read_recipe(write(tmp_path, "r.toml", ["[training]", "epochs = 3"]))
    with pytest.raises(DataError, match="not a recipe"):
        read_recipe(write(tmp_path, "r.toml", ["[train"]))
    with pytest.raises(OptionError, match="Say what to train on"):
        read_data(read_recipe(None).data)


@pytest.mark.parametrize("schedule", ["one_cycle", "inverse_sqrt", "constant", "plateau"])
def test_the_step_size_rises_and_then_does_not(schedule):
    sizes = [step_size(schedule, done / 100, 0.1) for done in range(1, 101)]
    assert sizes[:10] == sorted(sizes[:10])
    assert max(sizes) == pytest.approx(1)
    assert sizes[10:] == sorted(sizes[10:], reverse=True)
    assert all(0 < size <= 1 for size in sizes)


def test_a_plateau_halves_the_step_size_after_the_warm_up_and_down_to_one_percent():
    plateau = Plateau()
    rising = [(5.0, False, 1), (4.0, False, 1)]
    for bleu, warm, factor in [*rising, (6.0, True, 1), (6.0, True, 0.5), (7.0, True, 0.5), (1.0, True, 0.25)]:
        plateau.after(bleu, warm=warm)
        assert plateau.factor == factor
    for _ in range(10):
        plateau.after(0.0, warm=True)
    assert plateau == Plateau(0.01, 7.0)


def test_training_on_a_plateau_takes_smaller_steps_and_goes_on_with_them(tmp_path):
    pairs = [f"{source}\t{target}" for source, target in TEN]
    overrides = {
        "data": {"pairs": write(tmp_path, "pairs.tsv", pairs), "vocabulary": 120},
        "model": {"embedding": 8, "hidden": 8},
        "train": {"epochs": 4, "schedule": "plateau", "warmup": 0.25, "learning_rate": 1e-3},
    }
    train(read_recipe(None, overrides), tmp_path, progress=False)
    kept = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    # Too little is learned for any BLEU: no validation is better than the first.
    assert kept["plateau"] == {"factor": 0.125, "best": 0.0}
    assert kept["lr_schedulers"][0]["_last_lr"] == [1e-3 * 0.25]
    task = TranslationTask(Translator.load(tmp_path / "model"), read_recipe(None, overrides).train, total_steps=4)
    task.on_load_checkpoint(kept)
    assert task.plateau == Plateau(0.125, 0.0)
