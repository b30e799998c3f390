"""How good an image classifier is: accuracy, also by class."""

from regard.errors import counted
from regard.systems.recognize.config import RecognitionTest
from regard.systems.recognize.data import read_test
from regard.systems.recognize.model import ImageClassifier
from regard.systems.report import Measure, Report


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
    by_class = []
    for number, label in enumerate(images.classes):
        of_class = images.labels == number
        if of_class.any():
            mistakes = predicted[of_class & ~right]
            common = images.classes[int(mistakes.mode().values)] if len(mistakes) else ""
            by_class.append(
                {
                    "class": label,
                    "images": int(of_class.sum()),
                    "accuracy": 100 * float(right[of_class].double().mean()),
                    "most common mistake": common,
                }
            )
    outputs = [
        {"label": images.classes[int(label)], "predicted": images.classes[int(guess)]}
        for label, guess in zip(images.labels, predicted, strict=True)
    ]
    return Report(name, counted(len(images), "image"), scores, {"Accuracy by class": by_class}, outputs)
