"""Training translators: every architecture overfits ten examples, and training twice gives the same model."""

import os

import numpy as np
import pytest
import torch
from helpers.command_line import write_lines

from regard.data.batches import CostBatches
from regard.data.corpus import Corpus
from regard.data.pairs import CorpusPairs, TextPairs, collate
from regard.data.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.systems.plan import read_recipe
from regard.systems.run import train
from regard.systems.translate.alignment import link_words
from regard.systems.translate.config import TranslationConfig, TranslationTrain
from regard.systems.translate.model import Translator
from regard.systems.translate.training import TranslationTask, choose_max_tokens
from regard.training.checkpoints import read_checkpoint, step_files

# Lightning's own use of torch; and workers, which ten sentences do not need.
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
    "local_p": {"architecture": "luong", "align": "local_p", "score": "general", "window": 3},
    "coverage": {"coverage": True},
    "hard": {"align": "hard"},
    "transformer": {"architecture": "transformer", "layers": 1, "heads": 2, "feedforward_dim": 64},
}


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_overfits_ten_examples(kind):
    tokenizer = Tokenizer.train([text for pair in TEN for text in pair], size=120, minimum_count=1)
    sizes = {"embedding": 32, "dropout": 0.0}
    if kind != "transformer":
        sizes |= {"hidden": 32, "output_dropout": 0.0}
    config = TranslationConfig(**sizes, **ARCHITECTURES[kind])
    model = Translator(config, tokenizer, tokenizer)
    task = TranslationTask(
        model, TranslationTrain(label_smoothing=0.0, coverage_weight=0.1, soft_fraction=0.0), total_steps=1000
    )
    batch = collate(TextPairs(TEN, tokenizer, tokenizer).__getitems__(range(10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80 if kind != "hard" else 150):
        optimizer.zero_grad()
        task.loss(batch).backward()
        optimizer.step()
    found = model.eval().translate([source for source, _ in TEN], beam=2)
    texts = [translation.text for translation in found]
    right = sum(text == target for text, (_, target) in zip(texts, TEN, strict=True))
    assert right >= (10 if kind != "hard" else 8), texts


def test_hard_attention_is_soft_for_a_fraction_of_the_training():
    tokenizer = Tokenizer.train([text for pair in TEN for text in pair], size=120, minimum_count=1)
    model = Translator(TranslationConfig(embedding=8, hidden=8, align="hard"), tokenizer, tokenizer)
    task = TranslationTask(model, TranslationTrain(soft_fraction=0.25), total_steps=8)
    assert [task.is_soft(step) for step in range(8)] == [True, False, False, False, False, False, False, False]
    batch = collate(TextPairs(TEN, tokenizer, tokenizer).__getitems__(range(10)))
    task.loss(batch)
    assert task.baseline.mean == 0, "no choice, no reward"


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
            "train": {"epochs": 2, "average_decay": 0.9, "max_tokens": 60, "max_output_length": 2},
        },
    )
    trained = train(recipe, out=tmp_path / "run", progress=False)
    assert trained.metrics["epochs"] == 2
    assert {"valid_bleu", "test_bleu"} <= set(trained.metrics)
    text = (tmp_path / "run" / "test.tsv").read_text().split("\t")[2]
    assert len(trained.model.target_tokenizer.encode(text)) <= 2, "max_output_length"
    loaded = Translator.load(trained.folder, device="cpu")
    assert loaded.translate("one dog").text == trained.model.to("cpu").translate("one dog").text
    assert (tmp_path / "run" / "logs" / "metrics.csv").is_file()
    events = [path.read_bytes() for path in (tmp_path / "run" / "logs").glob("events.out.tfevents.*")]
    assert any(b"model.hidden" in content for content in events), "TensorBoard shows the recipe"
    again = train(recipe, out=tmp_path / "tuned", start_from=loaded, progress=False)
    assert again.model.source_tokenizer.vocabulary_hash == loaded.source_tokenizer.vocabulary_hash


@pytest.mark.parametrize(
    ("pairs", "max_tokens", "batches"), [(600, 512, 19), (40_000, 1_280, 500), (400_000, 4096, 1563)]
)
def test_batches_grow_with_the_corpus_so_that_small_ones_have_enough_updates(pairs, max_tokens, batches):
    """Of pairs with 16 tokens; an update needs some tokens, and more than 4,096 hardly make it better."""
    sizes = np.full((pairs, 2), 16)
    chosen = choose_max_tokens(sizes)
    assert chosen == max_tokens
    assert len(list(CostBatches(sizes, max_cost=chosen, shuffle=False, seed=0))) == batches


def test_training_twice_gives_the_same_model_with_workers_too(tmp_path):
    pairs = [f"{source}\t{target}" for source, target in TEN]
    data = {"pairs": write(tmp_path, "pairs.tsv", pairs), "vocabulary": 120}

    def parameters(name, workers):
        overrides = {
            "data": data,
            "model": {"embedding": 8, "hidden": 8},
            "train": {"epochs": 2, "max_tokens": 30, "workers": workers},
        }
        return train(read_recipe(None, overrides), out=tmp_path / name, progress=False).model.state_dict()

    first, *others = parameters("one", 0), parameters("two", 0), parameters("three", 1)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)
    assert "TOKENIZERS_PARALLELISM" not in os.environ


def test_training_on_a_plateau_takes_smaller_steps_and_goes_on_with_them(tmp_path):
    pairs = [f"{source}\t{target}" for source, target in TEN]
    overrides = {
        "data": {"pairs": write(tmp_path, "pairs.tsv", pairs), "vocabulary": 120},
        "model": {"embedding": 8, "hidden": 8},
        "train": {"epochs": 4, "schedule": "plateau", "warmup": 0.25, "learning_rate": 1e-3},
    }
    train(read_recipe(None, overrides), out=tmp_path, progress=False)
    kept = read_checkpoint(step_files(tmp_path / "checkpoints")[0])
    # Too little is learned for any BLEU: no validation is better than the first.
    assert kept["plateau"] == {"factor": 0.125, "best": 0.0}
    assert kept["optimizer"]["param_groups"][0]["lr"] == 1e-3 * 0.25
    longer = read_recipe(None, {**overrides, "train": overrides["train"] | {"epochs": 5}})
    train(longer, out=tmp_path, resume=True, progress=False)
    assert read_checkpoint(step_files(tmp_path / "checkpoints")[0])["plateau"] == {"factor": 0.0625, "best": 0.0}


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize("kind", ["conditional", "luong", "transformer", "input"])
def test_guidance_puts_the_attention_where_the_links_are(tmp_path, kind):
    """The links are those of a mirror, which no translation would lead to."""
    texts = [text for pair in TEN for text in pair]
    tokenizer = Tokenizer.train(texts, kind="word", minimum_count=1)
    mirrored = [
        (source, target, np.array([[max(0, len(source.split()) - 1 - j), j] for j in range(len(target.split()))]))
        for source, target in TEN
    ]
    corpus = Corpus.build(mirrored, tokenizer, tokenizer, tmp_path, linked=True, progress=False)
    own = (
        ARCHITECTURES["transformer"] | {"alignment_head": 2}
        if kind in ("transformer", "input")
        else ARCHITECTURES[kind]
    )
    if kind == "input":
        own = own | {"alignment_step": "input"}
    model = Translator(TranslationConfig(embedding=32, dropout=0.0, **own), tokenizer, tokenizer)
    task = TranslationTask(model, TranslationTrain(guidance=3.0), total_steps=100)
    guided = CorpusPairs(corpus, tokenizer, tokenizer, linked=True)
    batch = collate([guided[index] for index in range(10)])
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        task.loss(batch).backward()
        optimizer.step()
    pairs = [(source.split(), target.split()) for source, target in TEN]
    found = link_words(model.eval(), pairs)
    assert found == [{tuple(link) for link in links.tolist()} for _, _, links in mirrored]


def test_settings_of_guidance_that_would_have_no_effect_are_refused(tmp_path):
    files = {
        name: write_lines(tmp_path / name, [f"{text} {number}" for number in range(40)])
        for name, text in (("source", "a"), ("target", "c"))
    }
    links = write_lines(tmp_path / "links", ["0-1"] * 40)
    short = write_lines(tmp_path / "short", ["0-1"] * 39)
    world = {"world": "babel:en-fr", "examples": 40, "held_out": 4, "tokens": "word", "joint": False}
    data = {"held_out": 1, "tokens": "word", **{name: str(path) for name, path in files.items()}}
    for given, model, weight, says in (
        (data, {}, 1.0, "needs word links: give --data.alignments FILE"),
        (data | {"alignments": str(links)}, {}, 0.0, "alignments have no effect with guidance 0"),
        (data | {"alignments": str(short)}, {}, 1.0, "39 alignments and more training pairs"),
        (world | {"alignments": "x"}, {}, 1.0, "alignments are for the files source and target"),
        (world, {"architecture": "plain"}, 1.0, "this model has no attention"),
        (world, {"align": "hard"}, 1.0, "this model has align 'hard'"),
    ):
        with pytest.raises(RegardError, match=says):
            train(data=given, model=model, train={"guidance": weight}, out=tmp_path / "run", progress=False)
