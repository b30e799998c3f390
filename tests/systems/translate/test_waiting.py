"""Nothing in a step of training waits for a GPU: the next step can be prepared while it computes."""

import pytest
import torch

from regard.data.pairs import collate
from regard.systems.run import read_recipe, train
from regard.systems.translate.training import TranslationTask


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="only a GPU is ever waited for")
@pytest.mark.parametrize("architecture", ["rnnsearch", "luong", "plain", "transformer"])
def test_a_step_of_training_does_not_wait(tmp_path, architecture, monkeypatch):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"a {i} b\tc {i} d e\n" for i in range(40)))
    data = {"pairs": str(path), "vocabulary": 40, "held_out": 4}
    sizes = {"feedforward_dim": 8, "heads": 2} if architecture == "transformer" else {"hidden": 8}
    model = {"architecture": architecture, "embedding": 8, **sizes}
    training = {"epochs": 1, "max_tokens": 40, "average_decay": 0.9, "valid_beam": 1}
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
    recipe = read_recipe(None, {"data": data, "model": model, "train": training})
    done = train(recipe, out=tmp_path / "run", progress=False)
    assert watched == [3, 4]
    assert done.metrics["steps"] > 6
