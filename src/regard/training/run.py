"""Running a recipe: read the data, train, keep the best, save the model folder."""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import torch

from regard.data.batches import BatchLoader, CostBatches
from regard.data.corpus import Corpus
from regard.data.pairs import DropoutCorpus, TextPairs, collate, padded_sizes
from regard.errors import OptionError
from regard.metrics.translation import corpus_bleu
from regard.systems.captioner import Captioner
from regard.systems.image_classifier import ImageClassifier
from regard.systems.translator import Translator
from regard.training.caption_recipe import CaptionRecipe
from regard.training.captioning import train_captioner
from regard.training.fitting import begin, fit
from regard.training.image_recipe import ImageRecipe
from regard.training.material import Material, Pairs, make_tokenizers, read_data
from regard.training.recipe import Recipe
from regard.training.recognition import train_classifier
from regard.training.translation import TranslationTask

Model = TypeVar("Model", Translator, ImageClassifier, Captioner)
Examples = Corpus | DropoutCorpus


@dataclass(frozen=True)
class Trained(Generic[Model]):
    """What a run leaves behind."""

    folder: Path
    model: Model
    metrics: dict[str, Any]


@overload
def train(
    recipe: Recipe,
    folder: str | os.PathLike[str],
    *,
    start_from: Translator | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Trained[Translator]: ...


@overload
def train(
    recipe: ImageRecipe,
    folder: str | os.PathLike[str],
    *,
    start_from: ImageClassifier | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Trained[ImageClassifier]: ...


@overload
def train(
    recipe: CaptionRecipe,
    folder: str | os.PathLike[str],
    *,
    start_from: Captioner | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Trained[Captioner]: ...


def train(
    recipe: Any,
    folder: str | os.PathLike[str],
    *,
    start_from: Any = None,
    resume: bool = False,
    progress: bool = True,
) -> Trained[Any]:
    """Train what the recipe says into a folder: the model, logs/ and checkpoints/.

    `start_from` goes on from a trained model, with its tokenizers or classes. `resume` goes on from the folder's last
    checkpoint. Interrupting (Ctrl-C) ends the training early and saves what is there. A run that was interrupted and
    resumed gives, on a CPU, the very weights that it would have given without; but not with BPE dropout, whose draws
    cannot be repeated, nor with a time limit.
    """
    folder = Path(folder)
    wanted: type[Any]
    run: Any
    wanted, run = Translator, _train_translator
    if isinstance(recipe, ImageRecipe):
        wanted, run = ImageClassifier, train_classifier
    if isinstance(recipe, CaptionRecipe):
        wanted, run = Captioner, train_captioner
    if start_from is not None and not isinstance(start_from, wanted):
        raise OptionError(
            f"This recipe goes on from models of type {wanted.__name__}; got one of {type(start_from).__name__}."
        )
    begin(recipe.train)
    model, metrics = run(recipe, folder, start_from, resume=resume, progress=progress)
    model.save(folder / "model", metrics=metrics)
    (folder / "recipe.json").write_text(json.dumps(asdict(recipe), indent=2) + "\n", encoding="utf-8")
    return Trained(folder / "model", model, metrics)


def _train_translator(
    recipe: Recipe, folder: Path, start_from: Translator | None, *, resume: bool, progress: bool
) -> tuple[Translator, dict[str, Any]]:
    material = read_data(recipe.data)
    if start_from is None:
        model = Translator(recipe.model, *make_tokenizers(recipe.data, material))
    else:
        model = start_from.to("cpu").train()
    examples = _examples(recipe, material, model, folder, progress=progress)
    loaders = _loaders(recipe, examples, material.valid, model)
    task = TranslationTask(model, recipe.train, total_steps=recipe.train.epochs * len(loaders[0]))
    half = recipe.model.architecture == "transformer"
    metrics = fit(task, loaders, folder, score="valid_bleu", half_on_gpu=half, resume=resume, progress=progress)
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    metrics |= {f"train_{name}": count for name, count in asdict(examples.report).items()}
    if material.test:
        metrics |= _test(model, material.test, folder, recipe)
    return model, metrics


def _test(model: Translator, pairs: Pairs, folder: Path, recipe: Recipe) -> dict[str, Any]:
    """Translate the test sentences with a beam of 5; the translations are kept beside the model."""
    sources = [source for source, _ in pairs]
    said = [best[0].text for best in model.translate(sources, beam=5, max_length=recipe.train.max_output or None)]
    lines = [f"{source}\t{target}\t{text}\n" for (source, target), text in zip(pairs, said, strict=True)]
    (folder / "test.tsv").write_text("".join(lines), encoding="utf-8")
    bleu = corpus_bleu(said, [target for _, target in pairs], lowercase=recipe.data.lowercase)
    return {"test_bleu": bleu.value, "test_signature": bleu.signature, "test_sentences": len(pairs)}


def _examples(recipe: Recipe, material: Material, model: Translator, folder: Path, *, progress: bool) -> Examples:
    """The training pairs as ids in a store of the folder; an earlier run's store of the same is used again."""
    tokenizers = model.source_tokenizer, model.target_tokenizer
    corpus = Corpus.build(
        material.train,
        *tokenizers,
        folder / "corpus",
        max_length=recipe.data.max_length,
        progress=progress,
        fingerprint=material.train.fingerprint,
    )
    if progress:
        sys.stderr.write(f"Training pairs: {corpus.report}.\n")
    dropout = recipe.data.bpe_dropout
    return DropoutCorpus(corpus, *tokenizers, dropout=dropout) if dropout else corpus


def _loaders(
    recipe: Recipe, examples: Examples, valid_pairs: Pairs, model: Translator
) -> tuple[BatchLoader, BatchLoader]:
    batches = CostBatches(
        padded_sizes(examples.lengths), max_cost=recipe.train.max_tokens, shuffle=True, seed=recipe.train.seed
    )
    valid = TextPairs(valid_pairs, model.source_tokenizer, model.target_tokenizer)
    valid_batches = CostBatches(padded_sizes(valid.lengths), max_cost=recipe.train.max_tokens, shuffle=False, seed=0)
    return (
        BatchLoader(examples, batches, collate_fn=collate, **_workers(recipe)),
        BatchLoader(valid, valid_batches, collate_fn=collate),
    )


def _workers(recipe: Recipe) -> dict[str, Any]:
    """How many processes prepare batches beside this one."""
    count = recipe.train.workers
    if count < 0:
        count = 2 if recipe.data.bpe_dropout and torch.cuda.is_available() else 0
    return {"num_workers": count, "persistent_workers": True} if count else {}
