"""Nothing in a step of training waits for a GPU: the next step can be prepared while it computes."""

import pytest
import torch

from regard.systems.plan import read_recipe
from regard.systems.run import train
from regard.training.fit import Training


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
    update, watched = Training.update, []

    def watched_update(self, batch):
        # The first steps of a shape are for recording it; the last is followed by a validation, which may wait.
        if self.task.step in (3, 4):
            torch.cuda.set_sync_debug_mode("error")
            watched.append(self.task.step)
        try:
            return update(self, batch)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(Training, "update", watched_update)
    recipe = read_recipe(None, {"data": data, "model": model, "train": training})
    done = train(recipe, out=tmp_path / "run", progress=False)
    assert watched == [3, 4]
    assert done.metrics["steps"] > 6
