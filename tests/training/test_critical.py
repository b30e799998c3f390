"""Self-critical training: what is rewarded becomes likelier, and what is worse than the others less likely."""

import pytest
import torch

from regard.data.tokenizer import PAD, START, Tokenizer
from regard.errors import OptionError
from regard.metrics.captions import caption_words, cider_d
from regard.search.hypothesis import Hypothesis
from regard.systems.captioner import Captioner, CaptionerConfig
from regard.training.critical import Critic, critical_loss
from regard.training.recipe import read_recipe
from regard.training.run import train

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")

WANTED = [["a red dog runs", "the dog runs"], ["two birds", "two blue birds sing"]]


def test_rewards_are_cider_d_among_all_captions():
    critic = Critic(WANTED)
    said = ["a red dog", "two birds", "the dog runs"]
    corpus = [[caption_words(text) for text in each] for each in WANTED]
    for place, each in enumerate(corpus):
        alone = [cider_d([caption_words(text)], [each], corpus)[0] for text in said]
        assert critic(place, said) == pytest.approx(alone)
    first, second = critic(0, ["the dog runs", "two birds"])
    assert first > second == 0


@pytest.fixture
def model():
    config = CaptionerConfig(
        encoder="strided", stride=8, size=32, filters=(4, 6, 8), embedding=12, hidden=24, match=12, output_dropout=0.0
    )

    texts = [text for each in WANTED for text in each]
    return Captioner(config, Tokenizer.train(texts, size=100, kind="word", minimum_count=1)).eval()


def log_prob(model, encoded, tokens):
    given = torch.tensor([[START, *tokens]])
    log_probs = model.decoder.output(model.decoder(encoded, given).features).log_softmax(-1)
    return log_probs[0, : len(tokens)].gather(-1, torch.tensor(tokens)[:, None]).sum()


def test_a_step_makes_the_better_of_two_captions_likelier_and_the_other_less(model, monkeypatch):
    good, bad = (model.tokenizer.encode_batch([text])[0] for text in ("the dog runs", "two birds"))
    drawn = [Hypothesis(list(tokens), [0.0] * len(tokens), 0.0, False, None) for tokens in (good, bad)]
    monkeypatch.setattr(model, "draw", lambda encoded, max_length: drawn)
    shown = torch.randint(0, 255, (1, 3, 32, 32), dtype=torch.uint8)
    before = [log_prob(model, model.encode(shown), tokens).item() for tokens in (good, bad)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    critic = Critic(WANTED)
    loss, reward = critical_loss(model, critic, model.encode(shown), torch.tensor([0]), draws=2, max_length=9)
    assert reward.item() == pytest.approx(sum(critic(0, ["the dog runs", "two birds"])) / 2)
    loss.backward()
    optimizer.step()
    after = [log_prob(model, model.encode(shown), tokens).item() for tokens in (good, bad)]
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_captions_as_good_as_each_other_teach_nothing(model, monkeypatch):
    tokens = model.tokenizer.encode_batch(["a red dog runs"])[0]
    same = [Hypothesis(list(tokens), [0.0] * (len(tokens) + 1), 0.0, True, None)] * 6
    monkeypatch.setattr(model, "draw", lambda encoded, max_length: same)
    shown = torch.randint(0, 255, (2, 3, 32, 32), dtype=torch.uint8)
    loss, _ = critical_loss(model, Critic(WANTED), model.encode(shown), torch.tensor([0, 1]), draws=3, max_length=9)
    assert loss.item() == pytest.approx(0, abs=1e-6)


def test_drawn_captions_have_no_padding_or_unknown_words(model):
    encoded = model.encode(torch.randint(0, 255, (3, 3, 32, 32), dtype=torch.uint8))
    for drawn in model.draw(encoded, max_length=12):
        assert PAD not in drawn.tokens
        assert "unk" not in model.tokenizer.decode(drawn.tokens)


def test_rewards_rise_when_a_captioner_goes_on_by_them(tmp_path, monkeypatch):
    small = {"size": 32, "filters": (4, 6, 8), "embedding": 12, "hidden": 24, "match": 12}
    given = {"epochs": 12, "max_tokens": 150, "learning_rate": 0.01, "average": 0.0, "max_output": 12}
    data = {"examples": 60, "held_out": 6}
    recipe = read_recipe("scenes-soft", {"data": data, "model": small, "train": given})
    begun = train(recipe, tmp_path / "begun", progress=False)
    rewards = []

    def watched(*options, **more):
        loss, reward = critical_loss(*options, **more)
        rewards.append(reward.item())
        return loss, reward

    monkeypatch.setattr("regard.training.captioning.critical_loss", watched)
    given |= {"critical": 1.0, "epochs": 20, "learning_rate": 0.004, "validate_every": 20}
    recipe = read_recipe("scenes-soft", {"data": data, "model": small, "train": given})
    went_on = train(recipe, tmp_path / "more", start_from=begun.model, progress=False)
    assert len(rewards) == went_on.metrics["steps"]
    assert sum(rewards[-20:]) > 1.1 * sum(rewards[:20])


def test_a_single_draw_has_nothing_to_be_better_than(tmp_path):
    recipe = read_recipe("scenes-soft", {"train": {"critical": 0.5, "draws": 1}})
    with pytest.raises(OptionError, match=r"train\.draws must be 2 or more; got 1"):
        train(recipe, tmp_path, progress=False)
