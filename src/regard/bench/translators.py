"""How fast translators decode and train, at the size of a paper's small model, with random weights."""

from collections.abc import Callable

import torch

from regard.bench.contest import Contest, device
from regard.data.pairs import Batch, collate
from regard.data.tokenizer import START, Tokenizer
from regard.layers.layout import by_columns
from regard.systems.translator import Translator, TranslatorConfig
from regard.training.recipe import TrainConfig
from regard.training.translation import TranslationTask

WORDS, LENGTH = 7_900, 20
KINDS = {
    "rnnsearch": TranslatorConfig(embedding=256, hidden=512, encoder_hidden=256, share_embeddings="all"),
    "luong": TranslatorConfig(
        architecture="luong", cell="lstm", score="general", embedding=256, hidden=512, encoder_hidden=256
    ),
    "luong without input feeding": TranslatorConfig(
        architecture="luong",
        cell="lstm",
        score="general",
        embedding=256,
        hidden=512,
        encoder_hidden=256,
        input_feeding=False,
    ),
    "transformer": TranslatorConfig(architecture="transformer", embedding=256, layers=4, inner=1024),
}


def decoding() -> list[Contest]:
    """Sentences of 20 words into outputs of exactly 20, greedily and with a beam, many at a time and one by one."""
    tokenizer, sentences = _language()
    models = {
        name: by_columns(_model(config, tokenizer).eval()) for name, config in KINDS.items() if "without" not in name
    }

    def run(model: Translator, beam: int, batch: int, count: int) -> Callable[[], object]:
        return lambda: model.translate(sentences[:count], beam=beam, batch=batch, min_length=LENGTH, max_length=LENGTH)

    return [
        Contest(
            f"{'greedy' if beam == 1 else f'beam {beam}'}, {batch} at a time",
            {name: run(model, beam, batch, count) for name, model in models.items()},
            things=count,
        )
        for beam in (1, 5)
        for batch, count in ((64, 64), (1, 8))
    ]


def training() -> list[Contest]:
    """One step of training on 64 sentences: target tokens in a second."""
    tokenizer, sentences = _language()
    ids = [tokenizer.encode(sentence) for sentence in sentences]
    batch = collate(list(zip(ids, reversed(ids), strict=True))).to(device())
    rivals = {name: _step(_model(config, tokenizer).train(), batch) for name, config in KINDS.items()}
    return [Contest(f"one step, {len(ids)} sentences of {LENGTH} words", rivals, things=len(ids) * (LENGTH + 1))]


def _language() -> tuple[Tokenizer, list[str]]:
    """A vocabulary of whole words that mean nothing, and sentences of them."""
    words = [f"w{number}" for number in range(WORDS)]
    tokenizer = Tokenizer.train(words * 2, size=WORDS + 100, kind="word")
    drawn = torch.randint(WORDS, (64, LENGTH), generator=torch.Generator().manual_seed(START))
    return tokenizer, [" ".join(words[number] for number in row) for row in drawn.tolist()]


def _model(config: TranslatorConfig, tokenizer: Tokenizer) -> Translator:
    torch.manual_seed(0)
    return Translator(config, tokenizer, tokenizer).to(device())


def _step(model: Translator, batch: Batch) -> Callable[[], object]:
    task = TranslationTask(model, TrainConfig(), total_steps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def run() -> None:
        loss, _, _ = task._loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return run
