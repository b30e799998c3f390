"""How good an image classifier is: accuracy, also by class."""

from regard.errors import counted
from regard.systems.recognize.config import RecognitionTest
from regard.systems.recognize.data import read_test
from regard.systems.recognize.model import ImageClassifier
from regard.systems.report import Measure, Report, class_table


def evaluate(model: ImageClassifier, test_set: RecognitionTest, *, name: str = "model") -> Report:
    """Classify the images of a test set."""
    images = read_test(model, test_set)
    probabilities = model.probabilities(images.images)
    predicted = probabilities.argmax(-1)
    right = predicted == images.labels
    top = probabilities.topk(min(5, len(images.classes))).indices
    scores = {
        "accuracy": Measure(100 * float(right.double().mean()), note="percent"),
        "top-5 accuracy": Measure(
            100 * float((top == images.labels[:, None]).any(1).double().mean()),
            note="percent: the right class is among the five most probable",
        ),
        "log-likelihood": Measure(
            float(probabilities.gather(1, images.labels[:, None]).clamp_min(1e-12).log().double().mean()),
            "{:.4f}",
            "nats per image",
        ),
    }
    by_class = class_table(images.classes, images.labels.tolist(), predicted.tolist(), "images")
    outputs = [
        {"label": images.classes[int(label)], "predicted": images.classes[int(guess)]}
        for label, guess in zip(images.labels, predicted, strict=True)
    ]
    return Report(name, counted(len(images), "image"), scores, {"By class": by_class}, outputs)
