"""Custom scores, alignments, encoders, decoders and tasks, named by their import path, train without a fork."""

import re
import sys

import numpy as np
import pytest
import torch

import regard
from regard.attention import align
from regard.attention.attend import Attention
from regard.cli import main
from regard.data.vocabulary import Vocabulary
from regard.errors import OptionError
from regard.parts import build_part, find_part
from regard.systems.classify.config import ClassificationConfig
from regard.systems.classify.data import Packing
from regard.systems.classify.networks import AttentionPooling, Pooling
from regard.systems.read.config import ReadingConfig
from regard.systems.read.model import Reader
from regard.systems.tape.config import TapeConfig, TapeData

MODULE = '''
import torch
from torch import nn
from regard.attention.align import Align, Focus, masked_softmax
from regard.attention.score import Score
from regard.decoders.bahdanau import Bahdanau
from regard.encoders.encoded import Encoded
from regard.encoders.readers import LSTMReader
from regard.encoders.recurrent import RecurrentEncoder
from regard.layers.controllers import FeedForwardController
from regard.systems.tape.networks import LSTMNetwork
from regard.worlds.tapes import Copy, Tapes, Task


class Bilinear(Score):
    """query' W key / 2."""

    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(query_dim, key_dim) / key_dim)

    def reference(self, query, key):
        return query @ self.matrix @ key.mT / 2


def plain_score(query, key):
    return query.sum(-1, keepdim=True) * key.sum(-1).unsqueeze(-2)


def make_score():
    return plain_score


class Sharpened(Align):
    """A softmax of logits times two."""

    def weigh(self, logits, allowed, state, window, **controls):
        return Focus(masked_softmax(2 * logits, allowed))


class Reader(RecurrentEncoder):
    def __init__(self, embedding, hidden, dropout):
        super().__init__(embedding, hidden, dropout=dropout)


class Writer(Bahdanau):
    def __init__(self, embedding, **sizes):
        sizes.pop("num_layers"), sizes.pop("num_heads")
        sizes["summary_dim"] = sizes["hidden"]
        super().__init__(embedding, **sizes)


class Patches(nn.Module):
    """Cells of an image: one linear layer for each patch."""

    def __init__(self, stride):
        super().__init__()
        self.dim, self.layer = 6, nn.Conv2d(3, 6, stride, stride)

    def forward(self, images):
        states = self.layer(images).flatten(2).mT
        return Encoded(states, torch.ones_like(states[:, :, 0], dtype=torch.bool).unsqueeze(1), states.mean(1))


class Neighbours(nn.Module):
    """Each state is that of a word and its neighbours."""

    def __init__(self, input_dim, hidden):
        super().__init__()
        self.dim, self.layer = hidden, nn.Conv1d(input_dim, hidden, 3, padding=1)

    def forward(self, inputs, lengths):
        return torch.tanh(self.layer(inputs.mT)).mT


class Cells(LSTMReader):
    def __init__(self, input_dim, hidden, num_layers):
        super().__init__(input_dim, hidden, num_layers=num_layers)


class Controller(FeedForwardController):
    pass


class Network(LSTMNetwork):
    def __init__(self, inputs, outputs, hidden):
        super().__init__(inputs, outputs, hidden=hidden)


class Pixels(nn.Module):
    def __init__(self, planes, size, dim):
        super().__init__()
        self.layer = nn.Linear(planes * size * size, dim)

    def forward(self, seen):
        return torch.tanh(self.layer(seen.flatten(1)))


class Sort(Copy):
    """Answer with the vectors in rising order of their first bit."""

    name = "sort"

    def write(self, drawn):
        inputs, targets, scored = super().write(drawn)
        rows = drawn.rows
        order = rows[..., 0].argsort(dim=1, stable=True).unsqueeze(-1).expand_as(rows)
        targets[:, rows.shape[1] + 1 :] = rows.gather(1, order)
        return Tapes(inputs, targets, scored)


class Mute(Task):
    """Defines nothing."""

    name = "mute"


class Short(Copy):
    """Scores one step too few."""

    name = "short"

    def write(self, drawn):
        inputs, targets, scored = super().write(drawn)
        return Tapes(inputs, targets, scored[1:])


def greedy_for_sizes(query_dim, colour):
    return None


class Broken(Score):
    def __init__(self, **sizes):
        raise RuntimeError("no such matrix")


class Failing(Score):
    def reference(self, query, key):
        return query @ torch.zeros(3, 3) @ key.mT


NUMBER = 3
'''
SMALL = ["--data.world", "babel:en-fr", "--data.examples", "60", "--data.held_out", "5", "--data.vocabulary", "200"]
SMALL += ["--model.embedding", "8", "--model.hidden", "8", "--train.epochs", "1", "--train.max_tokens", "400"]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "my_parts.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("my_parts", None)  # that of another test
    yield tmp_path
    sys.modules.pop("my_parts", None)


def run(*tokens: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(tokens))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "parts",
    [
        ["--model.score", "my_parts:Bilinear", "--model.align", "my_parts:Sharpened"],
        ["--model.score", "my_parts:make_score"],
        ["--model.encoder", "my_parts:Reader", "--model.decoder", "my_parts:Writer"],
    ],
    ids=["score and alignment", "function", "encoder and decoder"],
)
def test_a_model_with_parts_from_outside_the_package_trains_and_is_loaded_with_trust(mine, capsys, parts):
    assert run("train", *SMALL, *parts, "--out", "run") == 0, capsys.readouterr().err
    path = parts[1]
    with pytest.raises(OptionError, match=f"uses .*{path}.*Pass trust=True"):
        regard.load("run")
    model = regard.load("run", trust=True)
    assert model.config.to_dict()[parts[0].removeprefix("--model.")] == path
    assert model.translate("the dog runs .").trace is not None
    assert run("translate", "--model", "run", "the dog runs .") == 2
    assert "--trust" in capsys.readouterr().err
    assert run("translate", "--model", "run", "--trust", "the dog runs .") == 0
    further = ["train", *SMALL, *parts, "--from", "run", "--out", "further"]
    assert run(*further) == 2
    assert "--trust" in capsys.readouterr().err
    assert run(*further, "--trust") == 0


def test_a_part_that_fails_is_not_called_a_fault_of_regard(mine, capsys):
    assert run("train", *SMALL, "--model.score", "my_parts:Failing", "--out", "run") == 1
    *_, what, where = capsys.readouterr().err.splitlines()
    assert what.startswith("regard: RuntimeError: ")
    line = 1 + MODULE.splitlines().index("        return query @ torch.zeros(3, 3) @ key.mT")
    assert where.startswith(f"It happened in {mine / 'my_parts.py'}, line {line}, in reference. Run the same command")


CAPTION = ("caption", {"world": "scenes", "examples": 24, "held_out": 4, "minimum_count": 1})
IMAGE = {"image_size": 32, "stride": 8, "filters": (4, 8, 16), "embedding": 8, "hidden": 8}
CLASSIFY = ("classify", {"world": "reviews", "examples": 24, "held_out": 4, "minimum_count": 1})
READ = ("read", {"world": "stories", "examples": 24, "held_out": 4, "minimum_count": 1})
TAG = {"task": "tag", "embedding": 8, "hidden": 8}
GLIMPSE = ("glimpse", {"examples": 8, "held_out": 4, "test_examples": 4})
TAPE = ("tape", {"bits": 3, "max_length": 3, "valid_tapes": 3})
BOTH = {"score": "my_parts:Bilinear", "align": "my_parts:Sharpened"}
ATTENDS = {"cell": "self-attention", "heads": 2, **TAG, **BOTH}


@pytest.mark.parametrize(
    ("system", "model"),
    [
        (CAPTION, IMAGE | BOTH),
        (CAPTION, IMAGE | {"encoder": "my_parts:Patches"}),
        (CLASSIFY, {"embedding": 6, "hidden": 5} | BOTH),
        (CLASSIFY, {"embedding": 6, "hidden": 5, "align": "my_parts:Sharpened", "read": "sentences"}),
        (CLASSIFY, {"embedding": 6, "hidden": 5, "encoder": "my_parts:Neighbours"}),
        (READ, ATTENDS),
        (READ, {"cell": "my_parts:Cells", **TAG}),
        (GLIMPSE, {"hidden": 8, "glimpse_dim": 6, "what": "my_parts:Pixels", "core": "torch.nn:GRUCell"}),
        (TAPE, {"hidden": 8, "controller": "my_parts:Controller"}),
        (TAPE, {"hidden": 8, "architecture": "attention"} | BOTH),
        (TAPE, {"hidden": 8, "architecture": "my_parts:Network"}),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else " ".join(key for key in each if ":" in str(each[key])),
)
def test_every_system_takes_custom_parts(mine, system, model):
    (kind, data), out = system, mine / "run"
    (mine / "recipe.toml").write_text(f'system = "{kind}"\n', encoding="utf-8")
    settings = {"epochs": 1} | ({"epoch_updates": 2, "batch_size": 4} if kind == "tape" else {})
    trained = regard.train(mine / "recipe.toml", out=out, data=data, model=model, train=settings, progress=False)
    path = next(value for value in model.values() if ":" in str(value))
    with pytest.raises(OptionError, match=f"uses .*{path}.*Pass trust=True"):
        regard.load(out)
    loaded = regard.load(out, device="cpu", trust=True)
    given = {
        "caption": lambda: np.zeros((32, 32, 3), np.uint8),
        "glimpse": lambda: np.zeros((60, 60), np.uint8),
        "tape": lambda: "101 010",
    }.get(kind, lambda: "the dog saw the cat .")()
    found, again = (each.eval().cpu().predict(given) for each in (trained.model, loaded))
    maps = [() if each.trace is None else each.trace.maps for each in (found, again)]
    for one, other in zip(*maps, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)
    if BOTH.items() <= model.items():
        parts = [part for part in loaded.modules() if type(part).__module__ == "my_parts"]
        assert {type(part).__name__ for part in parts} == {"Bilinear", "Sharpened"}
        assert again.trace is not None
    assert regard.faithfulness(loaded, given) is not None


@pytest.mark.parametrize("fusion", ["shallow", "aligned"])
def test_fusion_takes_a_custom_score_and_alignment(mine, fusion):
    config = ReadingConfig(task="entail", fusion=fusion, embedding=6, hidden=8, **BOTH)
    reader = Reader(config, Vocabulary.build([["a", "dog", "sleeps"]]), ("yes", "no")).eval()
    assert {type(part).__name__ for part in reader.modules()} >= {"Bilinear", "Sharpened"}
    assert reader.read(("a dog sleeps", "a dog")).trace.map("between").weights.shape == (2, 3)


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (ReadingConfig, {}),
        (ReadingConfig, {"cell": "lstm", "task": "entail"}),
        (ClassificationConfig, {"pool": "max"}),
        (TapeConfig, {}),
    ],
)
def test_a_score_that_would_be_ignored_is_refused(config, fields):
    with pytest.raises(OptionError, match=r"score.* Remove (it|them)\."):
        config(**fields, **BOTH)


def test_custom_pooling_is_that_of_the_paper_where_its_parts_are(mine):
    torch.manual_seed(1)
    states, packing = torch.randn(9, 4), Packing.from_lengths(np.array([2, 4, 3]))
    built_in = Pooling("attention", 4, 5)
    custom = AttentionPooling(Attention(built_in.score, align.Softmax()), 5)
    for found, expected in zip(custom(states, packing), built_in(states, packing), strict=True):
        torch.testing.assert_close(found, expected)


def test_a_custom_task_is_trained_evaluated_answered_and_loaded_with_trust(mine, capsys):
    recipe = 'system = "tape"\n[data]\ntask = "my_parts:Sort"\nbits = 3\nmax_length = 4\nvalid_tapes = 4\n'
    recipe += "[model]\nhidden = 8\n[train]\nepochs = 1\nepoch_updates = 2\nbatch_size = 4\n"
    (mine / "sort.toml").write_text(recipe, encoding="utf-8")
    assert run("train", "sort.toml", "--out", "run") == 0, capsys.readouterr().err
    assert "--trust" in capsys.readouterr().out, "the printed command answers as it stands"
    sys.modules.pop("my_parts")
    assert run("evaluate", "run", "--count", "4") == 2
    assert "uses task = 'my_parts:Sort': loading it runs that code" in capsys.readouterr().err
    assert "my_parts" not in sys.modules, "nothing of it has run"
    assert run("evaluate", "run", "--count", "4", "--trust") == 0
    assert run("tape", "--model", "run", "101 010") == 2
    assert run("tape", "--model", "run", "--trust", "101 010") == 0
    assert run("tape", "--model", "run", "--trust", "--length", "3") == 0
    model = regard.load("run", device="cpu", trust=True)
    assert model.tape("101 010 100 011").target == ((0, 1, 0), (0, 1, 1), (1, 0, 1), (1, 0, 0))
    assert model.task.to_dict()["task"] == "my_parts:Sort"


def test_a_task_is_a_subclass_of_task(mine):
    for path, message in [
        ("my_parts:Bilinear", "not a subclass of regard.worlds.tapes.Task"),
        ("sort", "task must be one of copy, repeat-copy, recall, priority-sort, ngrams, or a custom part as package"),
    ]:
        with pytest.raises(OptionError, match=message):
            TapeData(task=path)


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("Mute", "Mute must define write"),
        ("Short", r"Short\.write returned scored \(\d+,\) for \d+ sequences; expected \(\d+,\)"),
    ],
)
def test_what_a_custom_task_must_define_and_write_is_explained(mine, capsys, task, says):
    recipe = f'system = "tape"\n[data]\ntask = "my_parts:{task}"\nbits = 3\nmax_length = 4\nvalid_tapes = 4\n'
    (mine / "own.toml").write_text(recipe + "[model]\nhidden = 8\n", encoding="utf-8")
    assert run("train", "own.toml", "--out", "run") == 2
    assert re.search(says, capsys.readouterr().err)


def test_a_score_in_the_place_of_an_alignment_is_refused_before_training(mine, capsys):
    for option, path, says in [
        ("align", "Bilinear", "'my_parts:Bilinear': Bilinear is a score, not an alignment: pass it as `score`."),
        ("score", "Sharpened", "'my_parts:Sharpened': Sharpened is an alignment, not a score: pass it as `align`."),
        ("score", "plain_score", "name one that returns it, def make(): return score"),
    ]:
        assert run("train", *SMALL, f"--model.{option}", f"my_parts:{path}", "--out", "run") == 2
        assert says in capsys.readouterr().err


def test_what_is_wrong_with_a_path_is_said(mine):
    for path, message in [
        ("no_such_module:X", "there is no module 'no_such_module'"),
        ("my_parts:Bilinaer", "my_parts has no 'Bilinaer'. Did you mean 'Bilinear'?"),
        ("my_parts:NUMBER", "which is neither a class nor a function"),
        ("my_parts:greedy_for_sizes", "asks for colour, which this model cannot give. It can give: query_dim"),
        ("my_parts:plain_score", "a function that returns the part, rather than the part itself"),
        ("my_parts:Broken", "'my_parts:Broken' cannot be built: RuntimeError: no such matrix."),
    ]:
        with pytest.raises(OptionError) as raised:
            build_part(path, {"query_dim": 3, "key_dim": 5})
        assert message in str(raised.value)
    assert find_part("my_parts:NUMBER") == 3
