"""Feature stores: the features of the encoder, resumed after a kill, and never mixed with those of another."""

import json
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from regard.data.features import FeatureStore
from regard.data.images import Images, Square, Whole
from regard.errors import DataError, NonFiniteError, OptionError, RegardWarning, ShapeError

SIDE = 12


def encode(pixels):
    """Four cells of five features, from the means of the quarters."""
    quarters = pixels.reshape(len(pixels), 2, SIDE // 2, 2, SIDE // 2, 3).mean((2, 4)).reshape(len(pixels), 4, 3)
    return np.concatenate([quarters / 255, quarters[:, :, :2] ** 2 / 9e4], -1)


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(11):
        Image.new("RGB", (20, 16), (20 * n, 3, 250 - n)).save(folder / f"{n}.png")
    (folder / "bad.jpg").write_bytes(b"nothing")
    return Images(folder)


NAMES = [f"{n}.png" for n in range(11)]
KIND = {"encoder": "means of quarters", "prepare": Square(SIDE), "batch": 3, "progress": False}


def test_features_are_those_of_the_encoder(tmp_path, images):
    store = FeatureStore.build(tmp_path / "store", images, NAMES, encode, **KIND)
    assert len(store) == 11
    assert store.shape == (4, 5)
    assert store.names == NAMES
    for name in NAMES:
        expected = encode(Square(SIDE)(images.open(name))[None])[0]
        np.testing.assert_allclose(store[name], expected, atol=1e-3)
    assert store.batch(["3.png", "0.png"]).dtype == np.float16
    assert np.array_equal(store.batch(["3.png", "0.png"])[1], store["0.png"])
    again = pickle.loads(pickle.dumps(store))  # noqa: S301
    assert np.array_equal(again["7.png"], store["7.png"])
    assert "11 images of 4 x 5 by means of quarters" in repr(again)


def test_an_encoder_may_return_tensors(tmp_path, images):
    kind = KIND | {"progress": True}
    store = FeatureStore.build(tmp_path / "s", images, NAMES, lambda p: torch.tensor(encode(p)).bfloat16(), **kind)
    assert len(store) == 11


def test_unreadable_images_are_left_out_and_tried_again(tmp_path, images):
    store = FeatureStore.build(tmp_path / "store", images, [*NAMES, "bad.jpg", "nowhere.jpg"], encode, **KIND)
    assert len(store) == 11
    assert list(store.failed) == ["bad.jpg", "nowhere.jpg"]
    assert "bad.jpg" not in store
    with pytest.raises(DataError, match=r"no features of bad\.jpg: bad\.jpg is not an image"):
        store["bad.jpg"]
    with pytest.raises(DataError, match="no features of other: it is not one of the 11 images"):
        store.batch(["0.png", "other"])
    Image.new("RGB", (20, 16)).save(images.locations[0] / "bad.jpg")
    again = FeatureStore.build(tmp_path / "store", images, [*NAMES, "bad.jpg", "nowhere.jpg"], encode, **KIND)
    assert "bad.jpg" in again
    assert list(again.failed) == ["nowhere.jpg"]


def test_an_interrupted_build_continues_where_it_stopped(tmp_path, images):
    seen = []

    def breaking(pixels, limit=3):
        seen.append(len(pixels))
        if len(seen) > limit:
            raise KeyboardInterrupt
        return encode(pixels)

    with pytest.raises(KeyboardInterrupt):
        FeatureStore.build(tmp_path / "store", images, NAMES, breaking, **KIND)
    with pytest.raises(DataError, match=r"features of 6 of 11 images\. Build it again"):
        FeatureStore.open(tmp_path / "store")
    seen.clear()
    store = FeatureStore.build(tmp_path / "store", images, NAMES, lambda p: breaking(p, 99), **KIND)
    assert seen == [2, 3, 2], "the probe image, and the five that were left"
    whole = FeatureStore.build(tmp_path / "whole", images, NAMES, encode, **KIND)
    assert np.array_equal(store.batch(NAMES), whole.batch(NAMES))
    seen.clear()
    FeatureStore.build(tmp_path / "store", images, NAMES, lambda p: breaking(p, 99), **KIND)
    assert seen == [2], "a complete store encodes the probe image alone"


KILLED = """
import sys, time
import numpy as np
from regard.data.features import FeatureStore
from regard.data.images import Images, Square, Whole

images_seen = []

def encode(pixels):
    images_seen.append(len(pixels))
    if len(images_seen) > 6:
        time.sleep(600)  # until it is killed
    return pixels.reshape(len(pixels), 4, -1) / 255

folder = sys.argv[1]
names = [f"{n}.png" for n in range(11)]
FeatureStore.build(folder + "/s", Images(folder + "/images"), names, encode, encoder="e", prepare=Square(12), batch=1)
"""


def test_a_killed_build_can_be_continued(tmp_path, images):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    state = tmp_path / "s" / "state.u8"
    deadline = time.monotonic() + 600
    while not (state.is_file() and sum(state.read_bytes()) >= 3):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert 3 <= sum(state.read_bytes()) < 11

    def flat(pixels):
        return pixels.reshape(len(pixels), 4, -1) / 255

    store = FeatureStore.build(tmp_path / "s", images, NAMES, flat, encoder="e", prepare=Square(SIDE), progress=False)
    for name in NAMES:
        np.testing.assert_allclose(store[name], flat(Square(SIDE)(images.open(name))[None])[0], atol=1e-3)


def test_two_builds_of_the_same_store_at_once_encode_each_image_once(tmp_path, images, monkeypatch):
    seen, waits = [], threading.Event()
    said = SimpleNamespace(write=lambda text: waits.set() if "Another process builds" in text else None)
    monkeypatch.setattr(sys, "stderr", said)

    def slow(pixels):
        seen.append(len(pixels))
        assert len(pixels) < KIND["batch"] or waits.wait(600), "the other build waits for this one"
        return encode(pixels)

    def build(_):
        return FeatureStore.build(tmp_path / "store", images, NAMES, slow, **KIND).batch(NAMES)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(build, range(2))
    assert sum(seen) == 11 + 2 + 2, "the images, and the probe image for each build"
    assert np.array_equal(first, second)


def test_another_encoder_list_or_preparation_is_refused(tmp_path, images):
    folder = tmp_path / "store"
    FeatureStore.build(folder, images, NAMES, encode, **KIND)
    with pytest.raises(DataError, match=r"another encoder or preparation than 'means of quarters'.*differ by up to"):
        FeatureStore.build(folder, images, NAMES, lambda p: 1.1 * encode(p), **KIND)
    with pytest.raises(DataError, match="encoder 'means of quarters', not 'other'"):
        FeatureStore.build(folder, images, NAMES, encode, **KIND | {"encoder": "other"})
    with pytest.raises(DataError, match="another list of images"):
        FeatureStore.build(folder, images, NAMES[::-1], encode, **KIND)
    with pytest.raises(DataError, match=r"prepare 'Square\(side=12\)', not 'Square\(side=24\)'"):
        FeatureStore.build(folder, images, NAMES, lambda p: encode(p[:, ::2, ::2]), **KIND | {"prepare": Square(24)})
    # An encoder that rounds a little differently, as on another device, is the same encoder.
    FeatureStore.build(folder, images, NAMES, lambda p: 1.0005 * encode(p), **KIND)


def test_invalid_features_are_explained(tmp_path, images):
    with pytest.raises(ShapeError, match=r"here for 2 images; got \(2, 20\)"):
        FeatureStore.build(tmp_path / "a", images, NAMES, lambda p: encode(p).reshape(len(p), -1), **KIND)
    with pytest.raises(NonFiniteError, match="not finite in float16"):
        FeatureStore.build(tmp_path / "b", images, NAMES, lambda p: 1e9 * encode(p), **KIND)
    with pytest.raises(OptionError, match=r"at least one image, .*got 0 images"):
        FeatureStore.build(tmp_path / "c", images, [], encode, **KIND)
    with pytest.raises(DataError, match="no complete feature store"):
        FeatureStore.open(tmp_path / "nowhere")


def test_a_damaged_store_is_not_opened(tmp_path, images):
    folder = tmp_path / "store"
    FeatureStore.build(folder, images, NAMES, encode, **KIND)
    (folder / "features.f16").write_bytes(b"\0" * 7)
    with pytest.raises(DataError, match=r"features\.f16 is damaged: it has 7 bytes"):
        FeatureStore.open(folder)
    (folder / "meta.json").write_text('{"regard_features": 99}')
    with pytest.raises(DataError, match="feature store format 99; this version reads format 2"):
        FeatureStore.open(folder)


def test_damaged_features_are_noticed_and_only_these_are_encoded_again(tmp_path, images):
    folder, seen = tmp_path / "store", []
    whole = FeatureStore.build(folder, images, NAMES, encode, **KIND).batch(NAMES)
    content = bytearray((folder / "features.f16").read_bytes())
    content[4 * 40 + 7] ^= 4  # 4 x 5 numbers of 2 bytes for each image
    (folder / "features.f16").write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"features of 1 image, such as 4\.png, that are not those that were written"):
        FeatureStore.open(folder)
    again = FeatureStore.build(folder, images, NAMES, lambda p: seen.append(len(p)) or encode(p), **KIND)
    assert seen == [2, 1], "the probe image, and the damaged one"
    assert np.array_equal(again.batch(NAMES), whole)
    assert len(FeatureStore.open(folder)) == 11


@pytest.mark.parametrize("name", ["features.f16", "state.u8", "sums.u4", "names.json", "probe.npy", "meta.json"])
@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_torn_store_is_built_anew(tmp_path, images, name, damage):
    folder = tmp_path / "store"
    whole = FeatureStore.build(folder, images, NAMES, encode, **KIND).batch(NAMES)
    if damage == "cut":
        (folder / name).write_bytes((folder / name).read_bytes()[:-3])
    else:
        (folder / name).unlink()
    if name != "probe.npy":  # which only a build reads
        with pytest.raises(DataError, match="Build"):
            FeatureStore.open(folder)
    is_silent = (name, damage) == ("meta.json", "missing")
    with nullcontext() if is_silent else pytest.warns(RegardWarning, match="built anew"):
        again = FeatureStore.build(folder, images, NAMES, encode, **KIND)
    assert np.array_equal(again.batch(NAMES), whole)


def test_a_store_in_bytes_is_not_continued_with_other_steps(tmp_path, images):
    kind, steps = KIND | {"encoder": "e"}, np.full(5, 0.02, np.float32)
    FeatureStore.build(tmp_path / "s", images, NAMES, encode, steps=steps, **kind)
    with pytest.raises(DataError, match="was started with steps_hash"):
        FeatureStore.build(tmp_path / "s", images, NAMES, encode, steps=2 * steps, **kind)
    np.save(tmp_path / "s" / "steps.npy", 2 * steps)
    with pytest.raises(DataError, match=r"steps\.npy is damaged: it has changed since the store was built"):
        FeatureStore.open(tmp_path / "s")


@pytest.mark.parametrize("names", [NAMES[::-1], NAMES[:-1], "no list"])
def test_a_store_with_changed_names_is_not_opened(tmp_path, images, names):
    folder = tmp_path / "store"
    FeatureStore.build(folder, images, NAMES, encode, **KIND)
    (folder / "names.json").write_text(json.dumps(names))
    with pytest.raises(DataError, match=r"names\.json is damaged: it (has changed since the store was built|cannot)"):
        FeatureStore.open(folder)


def test_a_description_with_other_fields_is_not_opened(tmp_path, images):
    folder = tmp_path / "store"
    FeatureStore.build(folder, images, NAMES, encode, **KIND)
    (folder / "meta.json").write_text('{"regard_features": 2, "count": 3}')
    with pytest.raises(DataError, match=r"meta\.json does not describe a feature store"):
        FeatureStore.open(folder)


def test_some_images_are_copied_and_all_of_them_stay_on_disk(tmp_path, images):
    store = FeatureStore.build(tmp_path / "store", images, NAMES, encode, **KIND)
    everything, two = store.tensors(NAMES), store.tensors(["3.png", "0.png"])
    assert everything.values.shape == (11, 4, 5)
    assert np.array_equal(two.values[0].numpy(), store["3.png"])


def test_a_store_in_bytes_keeps_features_to_half_a_step_and_cuts_what_lies_beyond(tmp_path, images, as_a_user):
    names = NAMES[:5]
    steps = np.array([0.5, 1.0, 2.0], np.float32)

    def means(pixels):
        return pixels.reshape(len(pixels), 4, -1, 3).mean(2) - 90

    kind = {"encoder": "means", "prepare": Whole(8), "progress": False}
    store = FeatureStore.build(tmp_path / "bytes", images, names, means, steps=steps, **kind)
    features = np.stack([means(Whole(8)(images.open(name))[None])[0] for name in names])
    cut = np.clip(features, -127 * steps, 127 * steps)
    assert (cut != features).any()
    assert (np.abs(store.batch(names) - cut) <= steps / 2 + 0.06).all(), "and what float16 rounds"
    tensors = store.tensors(names[3:])
    assert tensors.values.dtype == torch.int8
    np.testing.assert_allclose(tensors.take(torch.tensor([1, 0]))[0], store[names[4]].astype(np.float32), atol=0.06)
    for wrong, message in ((steps[:2], r"\(2,\), the smallest 0\.5"), (steps - 1, r"\(3,\), the smallest -0\.5")):
        with pytest.raises(OptionError, match=rf"steps must be above 0, one for each of 3 features; got {message}"):
            FeatureStore.build(tmp_path / "no", images, names, means, steps=wrong, **kind)
