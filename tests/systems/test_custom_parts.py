"""One's own score, alignment, encoder and decoder, named by their import path, train without a fork."""

import sys

import pytest

import regard
from regard.cli import main
from regard.errors import OptionError
from regard.parts import build_part, find_part

MODULE = '''
import torch
from torch import nn
from regard.attention.align import Align, Focus, masked_softmax
from regard.attention.score import Score
from regard.decoders.bahdanau import Bahdanau
from regard.encoders.recurrent import RecurrentEncoder


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


def test_a_captioner_takes_ones_own_score_and_alignment(mine):
    trained = regard.train(
        _caption_recipe(mine),
        out=mine / "run",
        model={"score": "my_parts:Bilinear", "align": "my_parts:Sharpened"},
        progress=False,
    )
    assert trained.model.decoder.attention.score.matrix.shape == (8, 16)


def _caption_recipe(folder):
    path = folder / "captions.toml"
    path.write_text(
        'system = "caption"\n[data]\nworld = "scenes"\nexamples = 24\nheld_out = 4\nminimum_count = 1\n'
        "[model]\nimage_size = 32\nstride = 8\nfilters = [4, 8, 16]\nembedding = 8\nhidden = 8\n[train]\nepochs = 1\n",
        encoding="utf-8",
    )
    return path


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
