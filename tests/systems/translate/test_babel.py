"""A small form of the gates: RNNsearch learns short Persian-English sentences, and attends to the right words."""

from itertools import islice

import pytest

from regard.metrics.alignment import GoldAlignment, alignment_error_rate, diagonal
from regard.systems.plan import read_recipe
from regard.systems.run import train
from regard.systems.translate.alignment import alignment_error
from regard.worlds.babel import pairs

pytestmark = pytest.mark.filterwarnings("ignore:.*isinstance.treespec.*")


@pytest.mark.usefixtures("as_a_user")
def test_rnnsearch_learns_babel_and_what_to_attend_to(tmp_path):
    overrides = {
        "data": {"world": "babel:fa-en", "examples": 8000, "max_words": 7, "held_out": 50, "held_out_test": 0},
        "model": {"embedding": 48, "hidden": 48, "dropout": 0.1, "state_dropout": 0.1},
        "train": {"minutes": 0.0, "epochs": 5, "validate_every": 5, "max_tokens": 600, "learning_rate": 0.006}
        | {"average_decay": 0.99},
    }
    model = train(read_recipe("babel-en-fr", overrides), out=tmp_path, progress=False).model.to("cpu")
    test = list(islice(pairs("fa", "en", split="test", max_words=7), 200))
    found = model.translate([" ".join(pair.source) for pair in test], beam=2)
    exact = sum(one.text == " ".join(pair.target) for one, pair in zip(found, test, strict=True)) / len(test)
    gold = [GoldAlignment(pair.source, pair.target, pair.sure, pair.possible) for pair in test]
    sure, possible = [one.sure for one in gold], [one.possible for one in gold]
    along = [diagonal(len(one.source), len(one.target)) for one in gold]
    assert exact >= 0.5
    assert alignment_error(model, gold).error_rate <= 0.33
    assert alignment_error_rate(along, sure, possible).error_rate >= 0.6, "the diagonal is no answer"
