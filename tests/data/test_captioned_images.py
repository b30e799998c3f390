"""Images with captions: each example once, a bounded number of tokens, of similar lengths or mixed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.data.captioned_images import CaptionedImages, CaptionExamples, ImageTensors
from regard.data.tokenizer import END, PAD, START, Tokenizer
from regard.errors import DataError


def test_no_batch_of_captions_is_too_large():
    lengths = np.random.default_rng(0).integers(3, 15, 200)
    examples = CaptionExamples(ImageTensors(torch.zeros(200, 3, 2, 2)), np.arange(200), [[5] * n for n in lengths])
    batches = list(examples.loader(max_tokens=160, shuffle=True))
    assert sorted(index for batch in batches for index in batch.indices.tolist()) == list(range(200))
    assert all(batch.target.numel() <= 160 for batch in batches)


@pytest.fixture(scope="module")
def captioned() -> CaptionedImages:
    captions = [["a dog", "a small dog runs"], ["a cat"], ["the dog and the cat run", "a dog"]]
    return CaptionedImages(ImageTensors(torch.arange(6).reshape(3, 2)), captions)


@pytest.fixture(scope="module")
def tokenizer(captioned) -> Tokenizer:
    return Tokenizer.train([text for texts in captioned.captions for text in texts], kind="word", minimum_count=1)


def test_each_caption_that_is_short_enough_is_an_example(captioned, tokenizer):
    examples = captioned.examples(tokenizer, max_length=4)
    assert len(captioned) == 3
    assert examples.indices.tolist() == [0, 0, 1, 2]
    assert [tokenizer.decode(ids) for ids in examples.captions] == ["a dog", "a small dog runs", "a cat", "a dog"]
    batch = examples.batch([1, 2])
    assert batch.images.tolist() == [[0, 1], [2, 3]]
    assert batch.target[0, 0] == START
    assert batch.target[1].tolist() == [START, *tokenizer.encode("a cat"), END, PAD, PAD]
    with pytest.raises(DataError, match="None of the 5 captions has 1 to 1 words"):
        captioned.examples(tokenizer, max_length=1)


def test_first_captions_have_each_image_once(captioned, tokenizer):
    examples = captioned.first_captions(tokenizer)
    assert examples.indices.tolist() == [0, 1, 2]
    assert [tokenizer.decode(ids) for ids in examples.captions] == ["a dog", "a cat", "the dog and the cat run"]


def test_captions_without_their_images_are_refused():
    with pytest.raises(DataError, match="got 2 indices and 1 captions"):
        CaptionExamples(ImageTensors(torch.zeros(2, 1)), np.arange(2), [[5]])


def test_int8_features_are_scaled_by_their_steps():
    tensors = ImageTensors(torch.tensor([[[2, -4]], [[10, 127]]], dtype=torch.int8), torch.tensor([0.5, 2.0]))
    assert tensors.take(torch.tensor([1, 0])).tolist() == [[[5.0, 254.0]], [[1.0, -8.0]]]
    assert len(tensors.to("cpu")) == 2


def test_right_cells_follow_their_captions_into_batches(captioned, tokenizer):
    dog, cat = np.array([[0, 0, 1], [1, 1, 0]], dtype=bool), np.array([[1, 0, 0], [0, 1, 0]], dtype=bool)
    guided = replace(captioned, right=[[dog, None], [cat], [np.ones((6, 3), dtype=bool), None]])
    examples = guided.examples(tokenizer, max_length=4)
    batch = examples.batch([1, 0, 2]).to("cpu")
    assert batch.right.shape == (3, 5, 3)
    assert not batch.right[0].any()
    assert batch.right[1, :2].tolist() == dog.tolist()
    assert batch.right[2, :2].tolist() == cat.tolist()
    assert not batch.right[:, 2:].any()
    assert examples.batch([1, 3]).right is None
