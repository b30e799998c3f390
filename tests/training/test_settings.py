"""The [train] fields that every system has: what they accept, and how a system changes their defaults."""

import pytest

from regard.config import fields_of
from regard.errors import OptionError
from regard.systems.caption.training import CaptionTrain
from regard.systems.recognize.config import RecognitionTrain
from regard.systems.translate.config import TranslationTrain
from regard.training.settings import TrainSettings

OF_SYSTEMS = (CaptionTrain, RecognitionTrain, TranslationTrain)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"epochs": 0}, "epochs must be a whole number, 1 or more; got 0"),
        ({"epochs": "twenty"}, "epochs must be a whole number, 1 or more; got 'twenty'"),
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"minutes": -1.0}, "minutes must be a number, 0 or more; got -1.0"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0; got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0; got nan"),
        ({"schedule": "one-cycle"}, "schedule must be one of one_cycle, .*; got 'one-cycle'. Did you mean 'one_cycle'"),
        ({"warmup": 1.0}, "warmup must be a number.*below 1; got 1.0"),
        ({"average_decay": 1.0}, "average_decay must be a number.*below 1"),
        ({"label_smoothing": -0.1}, "label_smoothing must be a number, 0 or more"),
        ({"gradient_clip": -1.0}, "gradient_clip must be"),
        ({"patience": -1}, "patience must be"),
        ({"validate_every": 0}, "validate_every must be"),
        ({"precision": "fp16"}, "precision must be one of auto, 32-true, bf16-mixed, 16-mixed"),
        ({"seed": 2**32}, "seed must be a whole number from 0 to"),
        ({"schedule_by": "clock"}, "schedule_by 'clock' needs minutes above 0, .*; got minutes 0"),
        ({"schedule": "inverse_sqrt", "warmup": 0.0}, "'inverse_sqrt' needs a warmup above 0"),
    ],
)
@pytest.mark.parametrize("settings", [TrainSettings, *OF_SYSTEMS])
def test_settings_that_cannot_be_trained_with_are_explained(settings, values, says, as_a_user):
    with pytest.raises(OptionError, match=says):
        settings(**values)


def test_only_what_a_system_says_differs_from_the_shared_defaults():
    shared = TrainSettings().to_dict()
    differing = {TranslationTrain: {"label_smoothing": 0.1}, CaptionTrain: {}, RecognitionTrain: {"gradient_clip": 0.0}}
    for settings, expected in differing.items():
        values = settings().to_dict()
        assert {name: values[name] for name in shared if values[name] != shared[name]} == expected


@pytest.mark.parametrize("settings", OF_SYSTEMS)
def test_every_field_is_explained_even_where_a_system_changes_its_default(settings):
    for field in fields_of(settings):
        assert field.meaning.endswith("."), field.name


def test_captions_are_rewarded_against_each_other():
    assert CaptionTrain(num_samples=1).num_samples == 1
    with pytest.raises(OptionError, match="num_samples must be 2 or more; got 1"):
        CaptionTrain(self_critical_fraction=0.5, num_samples=1)
