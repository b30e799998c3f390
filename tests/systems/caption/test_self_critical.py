"""Self-critical training: what is rewarded becomes likelier, and what is worse than the others less likely."""

import pytest
import torch

from regard.data.tokenizer import PAD, START, Tokenizer
from regard.metrics.captions import caption_words, cider_d
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.systems.caption.config import CaptionConfig
from regard.systems.caption.model import Captioner
from regard.systems.caption.self_critical import Critic, repeated, self_critical_loss
from regard.systems.plan import read_recipe
from regard.systems.run import train

REFERENCES = [["a red dog runs", "the dog runs"], ["two birds", "two blue birds sing"]]


def test_rewards_are_cider_d_among_all_captions():
    critic = Critic(REFERENCES)
    texts = ["a red dog", "two birds", "the dog runs"]
    corpus = [[caption_words(text) for text in each] for each in REFERENCES]
    for index, each in enumerate(corpus):
        alone = [cider_d([caption_words(text)], [each], corpus)[0] for text in texts]
        assert critic(index, texts) == pytest.approx(alone)
    first, second = critic(0, ["the dog runs", "two birds"])
    assert first > second == 0


@pytest.fixture
def model():
    config = CaptionConfig(
        image_size=32, filters=(4, 6, 8), embedding=12, hidden=24, attention_dim=12, output_dropout=0.0
    )
    texts = [text for each in REFERENCES for text in each]
    return Captioner(config, Tokenizer.train(texts, size=100, kind="word", minimum_count=1)).eval()


def log_prob(model, encoded, tokens):
    given = torch.tensor([[START, *tokens]])
    log_probs = model.decoder.output(model.decoder(encoded, given).features).log_softmax(-1)
    return log_probs[0, : len(tokens)].gather(-1, torch.tensor(tokens)[:, None]).sum()


def test_a_step_makes_the_better_of_two_captions_likelier_and_the_other_less(model, monkeypatch):
    good, bad = (model.tokenizer.encode_batch([text])[0] for text in ("the dog runs", "two birds"))
    drawn = [Hypothesis(list(tokens), [0.0] * len(tokens), 0.0, False, None) for tokens in (good, bad)]
    monkeypatch.setattr(model, "search_encoded", lambda encoded, options: [[one] for one in drawn])
    pixels = torch.randint(0, 255, (1, 3, 32, 32), dtype=torch.uint8)
    before = [log_prob(model, model.encode(pixels), tokens).item() for tokens in (good, bad)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    critic = Critic(REFERENCES)
    encoded = model.encode(pixels)
    loss, reward = self_critical_loss(model, critic, encoded, torch.tensor([0]), num_samples=2, max_length=9)
    assert reward.item() == pytest.approx(sum(critic(0, ["the dog runs", "two birds"])) / 2)
    loss.backward()
    optimizer.step()
    after = [log_prob(model, model.encode(pixels), tokens).item() for tokens in (good, bad)]
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_captions_as_good_as_each_other_teach_nothing(model, monkeypatch):
    tokens = model.tokenizer.encode_batch(["a red dog runs"])[0]
    same = [Hypothesis(list(tokens), [0.0] * (len(tokens) + 1), 0.0, True, None)] * 6
    monkeypatch.setattr(model, "search_encoded", lambda encoded, options: [[one] for one in same])
    pixels = torch.randint(0, 255, (2, 3, 32, 32), dtype=torch.uint8)
    critic, encoded = Critic(REFERENCES), model.encode(pixels)
    loss, _ = self_critical_loss(model, critic, encoded, torch.tensor([0, 1]), num_samples=3, max_length=9)
    assert loss.item() == pytest.approx(0, abs=1e-6)


def test_sampled_captions_have_no_padding_or_unknown_words(model):
    encoded = model.encode(torch.randint(0, 255, (3, 3, 32, 32), dtype=torch.uint8))
    for (sampled,) in model.search_encoded(encoded, Search(sample=True, max_length=12)):
        assert PAD not in sampled.tokens
        assert "unk" not in model.tokenizer.decode(sampled.tokens)


@pytest.mark.usefixtures("as_a_user")
def test_rewards_rise_when_a_trained_captioner_continues_with_them(tmp_path, monkeypatch):
    small = {"image_size": 32, "filters": (4, 6, 8), "embedding": 12, "hidden": 24, "attention_dim": 12}
    given = {"epochs": 8, "max_tokens": 150, "learning_rate": 0.01, "average_decay": 0.0, "max_output_length": 10}
    data = {"examples": 60, "held_out": 6}
    recipe = read_recipe("scenes-soft", {"data": data, "model": small, "train": given})
    begun = train(recipe, out=tmp_path / "begun", progress=False)
    rewards = []

    def watched(*options, **more):
        loss, reward = self_critical_loss(*options, **more)
        rewards.append(reward.item())
        return loss, reward

    monkeypatch.setattr("regard.systems.caption.training.self_critical_loss", watched)
    given |= {
        "self_critical_fraction": 1.0,
        "num_samples": 3,
        "epochs": 40,
        "learning_rate": 0.004,
        "validate_every": 40,
    }
    recipe = read_recipe("scenes-soft", {"data": data, "model": small, "train": given})
    continued = train(recipe, out=tmp_path / "more", start_from=begun.model, progress=False)
    assert len(rewards) == continued.metrics["steps"]
    # 1.28 to 1.29 with the seeds 1 to 3.
    assert sum(rewards[-20:]) > 1.1 * sum(rewards[:20])


def test_a_batch_is_repeated_as_a_whole(model):
    encoded = model.encode(torch.randint(0, 255, (3, 3, 32, 32), dtype=torch.uint8))
    again = repeated(encoded, 2)
    assert torch.equal(again.states, torch.cat([encoded.states] * 2))
    assert torch.equal(again.mask, torch.cat([encoded.mask] * 2))
    assert torch.equal(again.summary, torch.cat([encoded.summary] * 2))
