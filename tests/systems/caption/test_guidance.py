"""Guided captioners: where the words of training captions should look, and that they learn to look there."""

import numpy as np
import pytest
import torch
from PIL import Image

from regard.data.captions import ImageCaptions
from regard.data.images import Images
from regard.data.regions import Phrase
from regard.errors import DataError, RegardError
from regard.systems.caption.config import CaptionConfig
from regard.systems.caption.guidance import WordCells, right_cells
from regard.systems.plan import read_recipe
from regard.systems.run import train

CONFIG = CaptionConfig(encoder="efficientnet_lite0", stride=32, image_size=64)  # 2 x 2 cells
LEFT, RIGHT = [True, False, True, False], [False, True, False, True]


@pytest.fixture
def images(tmp_path):
    """One image of 100 x 50 pixels, whose boxes refer to a longer side of 500."""
    Image.new("RGB", (100, 50)).save(tmp_path / "1.png")
    return Images(tmp_path)


def phrase(text: str, caption: str, *boxes: tuple[float, float, float, float], number: int = 0) -> Phrase:
    return Phrase(number, caption.index(text), text, boxes)


def test_all_words_of_a_phrase_look_at_its_boxes(images):
    text = "A brown dog , and a cat"
    phrases = (phrase("A brown dog", text, (0.0, 0.0, 240.0, 250.0)), phrase("a cat", text, (260.0, 0.0, 500.0, 250.0)))
    ((table,),) = right_cells(CONFIG, [ImageCaptions("1.png", (text,))], {"1": phrases}, images)
    nothing = [False] * 4
    assert table.tolist() == [LEFT, LEFT, LEFT, nothing, RIGHT, RIGHT]


def test_the_noun_of_a_phrase_looks_there_in_the_other_captions_too(images):
    text = "A brown dog and two men"
    one = ImageCaptions("1.png", (text, "men watch a dog", "nothing known"))
    phrases = (
        phrase("A brown dog", text, (0.0, 0.0, 250.0, 250.0)),
        phrase("men", text, (0.0, 0.0, 250.0, 250.0)),
        Phrase(4, 0, "other men", ((260.0, 0.0, 500.0, 250.0),)),
    )
    ((_, table, unknown),) = right_cells(CONFIG, [one], {"1": phrases}, images)
    # Which of the two groups of men is meant is unknown.
    assert [row.any() for row in table] == [False, False, False, True]
    assert table[3].tolist() == LEFT
    assert unknown is None


def test_a_box_smaller_than_half_a_cell_has_the_cell_it_covers_most(images):
    text = "a ball"
    phrases = (phrase("a ball", text, (240.0, 10.0, 280.0, 60.0)),)
    ((table,),) = right_cells(CONFIG, [ImageCaptions("1.png", (text,))], {"1": phrases}, images)
    assert table.tolist() == [[False, True, False, False]] * 2


def test_boxes_of_other_images_are_refused(images):
    with pytest.raises(DataError, match="None of the training images has a box"):
        right_cells(
            CONFIG, [ImageCaptions("1.png", ("a dog",))], {"2": (phrase("a", "a", (0.0, 0.0, 9.0, 9.0)),)}, images
        )


def test_words_match_the_cells_that_only_their_images_have():
    """Word 3 + k is in the captions of images that have the feature k in one cell; word 7 is in all captions."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    matching = WordCells(8, 6, dim=16)
    optimizer = torch.optim.Adam(matching.parameters(), 0.02)
    for _ in range(60):
        kinds, indices = random.integers(0, 4, 12), random.integers(0, 5, 12)
        cells = 0.1 * torch.randn(12, 5, 6)
        cells[torch.arange(12), torch.from_numpy(indices), torch.from_numpy(kinds)] += 1
        words = torch.stack([torch.from_numpy(kinds) + 3, torch.full((12,), 7), torch.zeros(12).long()], dim=1)
        loss, matches = matching(words, cells, torch.arange(12))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert matches[:, 0].argmax(-1).tolist() == indices.tolist()
    assert matches[:, 0].sum(-1).mean() < 1.5 < 3 < matches[:, 1].sum(-1).mean()
    assert (matches[:, :2].amax(-1) == 1).all()
    assert not matches[:, 2].any()
    assert not matches.requires_grad


def test_captions_of_one_image_are_no_contrast():
    torch.manual_seed(0)
    matching, cells = WordCells(6, 4), torch.randn(1, 3, 4).expand(2, 3, 4)
    words = torch.tensor([[4, 5], [5, 3]])
    assert matching(words, cells, torch.tensor([7, 7]))[0].item() == pytest.approx(0, abs=1e-6)
    assert matching(words, cells, torch.tensor([7, 8]))[0].item() == pytest.approx(np.log(2), rel=1e-5)


def small(**training):
    data = {"examples": 60, "held_out": 6, "held_out_test": 0}
    model = {"image_size": 32, "filters": (4, 6, 8), "embedding": 12, "hidden": 24, "attention_dim": 12}
    given = {"epochs": 6, "max_tokens": 150, "learning_rate": 0.01, "average_decay": 0.0}
    return {"data": data, "model": model | {"architecture": "adaptive"}, "train": given | training}


def test_guided_training_pulls_the_attention_to_the_regions_of_the_world(tmp_path):
    train(read_recipe("scenes-soft", small(guidance=1.0)), out=tmp_path, progress=False)
    first, *_, last = read_column(tmp_path / "logs" / "metrics.csv", "guidance")
    assert last < 0.8 * first


def test_matching_is_trained_and_is_no_part_of_the_model(tmp_path, monkeypatch):
    seen = []
    forward = WordCells.forward

    def watched(self, *inputs):
        seen.append(self.words.weight.detach().clone())
        return forward(self, *inputs)

    monkeypatch.setattr(WordCells, "forward", watched)
    trained = train(read_recipe("scenes-soft", small(matching=0.5, epochs=1)), out=tmp_path, progress=False)
    assert not torch.equal(seen[0], seen[-1])
    assert not any("word_cells" in name for name in trained.model.state_dict())
    assert trained.metrics["matching"] > 0


def read_column(path, name):
    header, *rows = [line.split(",") for line in path.read_text().splitlines()]
    index = header.index(name)
    return [float(row[index]) for row in rows if row[index]]


def test_settings_of_guidance_that_would_have_no_effect_are_refused(tmp_path):
    world, files = {}, {"world": "", "captions": "c.csv", "images": ("i",), "store": "s"}
    for data, model, training, says in (
        (files, {}, {"guidance": 1.0}, "needs regions: give --data.regions FILE"),
        (files | {"regions": "r"}, {}, {}, "regions have no effect with guidance 0"),
        (files | {"regions": "r", "images": ()}, {}, {"guidance": 1.0}, "regions need the images"),
        ({"regions": "r"}, {}, {"guidance": 1.0}, "A world knows its regions"),
        (world, {"architecture": "show_and_tell"}, {"guidance": 1.0}, "this model has no attention"),
        (world, {"align": "hard"}, {"matching": 1.0}, "this model has align 'hard'"),
    ):
        tables = {"data": data, "model": model, "train": training}
        with pytest.raises(RegardError, match=says):
            train(read_recipe("scenes-soft", tables), out=tmp_path / "run", progress=False)
