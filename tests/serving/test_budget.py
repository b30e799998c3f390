"""A request may cost so many tokens and pixels, whatever its letters and bytes."""

import base64
import io

import pytest
from helpers.models import small_translator
from PIL import Image

from regard.errors import DataError
from regard.serving.budget import IMAGES, Pixels, check_work, work_of
from regard.serving.errors import RefusedError
from regard.serving.inputs import read_inputs
from regard.serving.settings import ServerSettings
from regard.systems.caption.model import Captioner
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.model import Translator
from regard.work import GivenUpError, wanted

MODEL = small_translator()


def test_work_is_counted_in_tokens_times_hypotheses():
    tokens = MODEL.costs(["a dog"])[0]
    assert work_of(MODEL, ["a dog"], TranslationOptions(beam=1)) == 3 * tokens
    assert work_of(MODEL, ["a dog"] * 2, TranslationOptions(beam=5)) == 2 * 5 * 3 * tokens
    assert work_of(MODEL, ["a dog"], TranslationOptions(beam=2, max_length=50)) == 2 * (tokens + 50)


def test_a_word_of_20000_letters_is_refused_before_it_is_translated(client):
    body = {"input": "qx" * 10_000, "model": "en-fr"}
    answer = client.post("/v1/translate", json=body)
    assert answer.status_code == 413
    assert "too many tokens" in answer.json()["error"]["message"]
    assert "--max-work" in answer.json()["error"]["message"]
    with pytest.raises(RefusedError, match="Divide it"):
        check_work(MODEL, ["a dog"] * 9, TranslationOptions(), ServerSettings(max_work=99))
    check_work(MODEL, ["a dog"], TranslationOptions(beam=1), ServerSettings(max_work=99))


def uri(side: int) -> str:
    stream = io.BytesIO()
    Image.new("L", (side, side)).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def test_the_images_of_a_request_share_their_pixels():
    settings = ServerSettings(max_megapixels=1)
    assert len(read_inputs(Captioner, [uri(1000)] * IMAGES, settings)) == IMAGES
    with pytest.raises(DataError, match="image of input 5 is too large"):
        read_inputs(Captioner, [uri(1000)] * (IMAGES + 1), settings)
    assert Pixels(settings).most == 1_000_000


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 3}, {"sample": True}])
def test_every_step_of_a_search_asks_whether_anybody_waits(options):
    asked = []
    with pytest.raises(GivenUpError), wanted(lambda: len(asked) < 4 and not asked.append(1)):
        MODEL.translate("a dog runs", max_length=30, min_length=20, **options)
    assert len(asked) == 4
    assert isinstance(MODEL, Translator)
    assert MODEL.translate("a dog", max_length=2, **options).text is not None, "elsewhere nothing is given up"
