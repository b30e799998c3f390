"""Nothing in a step of training waits for a GPU: the next step can be prepared while it computes."""

import pytest
import torch

from regard.data.pairs import collate
from regard.training.recipe import read_recipe
from regard.training.run import train
from regard.training.translation import TranslationTask


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="only a GPU is ever waited for")
@pytest.mark.parametrize("architecture", ["rnnsearch", "luong", "plain", "transformer"])
def test_a_step_of_training_does_not_wait(tmp_path, architecture, monkeypatch):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"a {i} b\tc {i} d e\n" for i in range(40)))
    data = {"pairs": str(path), "vocabulary": 40, "held_out": 4}
    model = {"architecture": architecture, "embedding": 8, "hidden": 8, "inner": 8, "heads": 2}
    training = {"epochs": 1, "max_tokens": 40, "average": 0.9, "valid_beam": 1}
    step, begin, watched = TranslationTask.training_step, TranslationTask.on_train_batch_start, []

    def watched_step(self, batch, index):
        # The first steps of a shape are for recording it; the last is followed by a validation, which may wait.
        if index in (3, 4):
            torch.cuda.set_sync_debug_mode("error")
            watched.append(index)
        return step(self, collate([([5, 6, 7], [5, 6])] * 3).to("cuda"), index)

    def next_batch(self, batch, index):
        torch.cuda.set_sync_debug_mode("default")
        begin(self, batch, index)

    monkeypatch.setattr(TranslationTask, "training_step", watched_step)
    monkeypatch.setattr(TranslationTask, "on_train_batch_start", next_batch)
    done = train(read_recipe(None, {"data": data, "model": model, "train": training}), tmp_path / "run", progress=False)
    assert watched == [3, 4]
    assert done.metrics["steps"] > 6
