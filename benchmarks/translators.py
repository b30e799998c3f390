"""Time decoding and training with small translators of random parameters.

    python benchmarks/translators.py decode    # sentences a second, greedily and with a beam
    python benchmarks/translators.py train     # target tokens a second

Times are medians of runs that take turns. Leave the machine alone meanwhile.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch

from regard.bench.contest import Contest, device, report
from regard.data.pairs import Batch, collate
from regard.data.tokenizer import START, Tokenizer
from regard.layers.layout import by_columns
from regard.systems.translate.config import TranslationConfig, TranslationTrain
from regard.systems.translate.model import Translator
from regard.systems.translate.training import TranslationTask

VOCABULARY = 7_900
"""Words of the vocabulary of the translators."""
SENTENCES, SENTENCE_WORDS = 64, 20
"""Number of generated sentences, and words in each."""
ONE_BY_ONE_SENTENCES = 8
LUONG = TranslationConfig(
    architecture="luong", cell="lstm", score="general", embedding=256, hidden=512, encoder_hidden=256
)
CONFIGS = {
    "rnnsearch": TranslationConfig(embedding=256, hidden=512, encoder_hidden=256, share_embeddings="all"),
    "luong": LUONG,
    "luong without input feeding": TranslationConfig(**LUONG.to_dict() | {"input_feeding": False}),
    "transformer": TranslationConfig(architecture="transformer", embedding=256, layers=4, feedforward_dim=1024),
}


def decoding() -> list[Contest]:
    """Translate into outputs of exactly 20 words, greedily and with a beam, 64 sentences at a time and one by one."""
    tokenizer, sentences = _language()
    models = {
        name: by_columns(_model(config, tokenizer).eval()) for name, config in CONFIGS.items() if "without" not in name
    }
    # As many inputs as a batch takes, and single ones.
    inputs = {len(sentences): [sentences], 1: [[sentence] for sentence in sentences[:ONE_BY_ONE_SENTENCES]]}
    return [
        Contest(
            f"{'greedy' if beam == 1 else f'beam {beam}'}, {batch} at a time",
            {name: _translating(model, batches, beam) for name, model in models.items()},
            items=sum(map(len, batches)),
        )
        for beam in (1, 5)
        for batch, batches in inputs.items()
    ]


def training() -> list[Contest]:
    """Train for one step on 64 sentences; the rate counts target tokens."""
    tokenizer, sentences = _language()
    ids = [tokenizer.encode(sentence) for sentence in sentences]
    batch = collate(list(zip(ids, reversed(ids), strict=True))).to(device())
    rivals = {name: _training_step(_model(config, tokenizer).train(), batch) for name, config in CONFIGS.items()}
    name = f"one step, {len(ids)} sentences of {SENTENCE_WORDS} words"
    return [Contest(name, rivals, items=len(ids) * (SENTENCE_WORDS + 1))]


def _language() -> tuple[Tokenizer, list[str]]:
    """A vocabulary of meaningless whole words, and sentences of them."""
    words = [f"w{number}" for number in range(VOCABULARY)]
    tokenizer = Tokenizer.train(words * 2, size=VOCABULARY + 100, kind="word")
    generator = torch.Generator().manual_seed(START)
    numbers = torch.randint(VOCABULARY, (SENTENCES, SENTENCE_WORDS), generator=generator)
    return tokenizer, [" ".join(words[number] for number in row) for row in numbers.tolist()]


def _model(config: TranslationConfig, tokenizer: Tokenizer) -> Translator:
    torch.manual_seed(0)
    return Translator(config, tokenizer, tokenizer).to(device())


def _translating(model: Translator, batches: list[list[str]], beam: int) -> Callable[[], object]:
    length = {"min_length": SENTENCE_WORDS, "max_length": SENTENCE_WORDS}
    return lambda: [model.translate(batch, beam=beam, **length) for batch in batches]


def _training_step(model: Translator, batch: Batch) -> Callable[[], object]:
    task = TranslationTask(model, TranslationTrain(), total_steps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def run() -> None:
        task.loss(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["decode", "train"])
    parser.add_argument("--repeats", type=int, default=7, help="timed runs, after one to warm up; default: 7")
    parser.add_argument("--tf32", action="store_true", help="on a GPU: allow TF32 matrix products")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high" if arguments.tf32 else "highest")
    contests, unit = (decoding(), "sentences") if arguments.what == "decode" else (training(), "tokens")
    report(contests, f"translators.py {arguments.what}", unit=unit, repeats=arguments.repeats, path=arguments.json)


if __name__ == "__main__":
    main()
