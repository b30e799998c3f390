"""JoeyNMT, OpenNMT-py and Eole, each run from its own command line with its own configuration.

Configurations are written as JSON, which is valid YAML. All have embeddings of 256, one GRU layer of 512, a
bidirectional encoder, additive ("mlp") attention after the recurrent step with input feeding, Adam, label smoothing
0.1, dropout 0.2, gradient clipping at 1 and the same vocabulary. In all three the output layer has 512 inputs.
"""

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from measure import LENGTH, Measured, Plan, Setting, between, first, mean_length, num_parameters, stamped
from prepared_data import BATCH_SENTENCES, PreparedData

NEVER = 1_000_000
"""A number of updates that is never reached."""
SUBWORDS = re.compile(r"(<unk>|t\d+)( (<unk>|t\d+))*")


@dataclass
class Peer(ABC):
    """Another toolkit."""

    name: ClassVar[str]
    title: ClassVar[str]
    encoder: ClassVar[int]
    """Units of the encoder in each direction."""
    batches: ClassVar[str]
    """How sentences are batched in training."""
    python: Path
    data: PreparedData
    plan: Plan

    @property
    def work(self) -> Path:
        """The folder of its configurations and models."""
        folder = self.data.work / self.name
        folder.mkdir(exist_ok=True)
        return folder

    def write(self, name: str, config: dict[str, Any]) -> str:
        """Write a configuration; returns its path."""
        path = self.work / f"{name}.yaml"
        path.write_text(json.dumps(config, indent=1), encoding="utf-8")
        return str(path)

    @abstractmethod
    def make_model(self) -> None:
        """Train a model to decode with for one update: its parameters are almost random."""

    @abstractmethod
    def train(self) -> Measured:
        """Train for a number of updates."""

    @abstractmethod
    def decode(self, setting: Setting, sentences: int) -> Measured:
        """Decode this number of sentences."""


class JoeyNMT(Peer):
    """JoeyNMT: its encoder has as many units in each direction as the decoder."""

    name, title, encoder = "joeynmt", "JoeyNMT 2.3.0", 512
    batches = "64 sentences at random"

    def make_model(self) -> None:
        """Train for one update with a learning rate of 0."""
        self._train("model", updates=1, every=1, rate=0.0)

    def train(self) -> Measured:
        """It logs tokens per second since the line before; the time between the lines gives the tokens."""
        plan = self.plan
        lines = self._train("speed", updates=plan.warmup + plan.updates, every=plan.every, rate=0.001)
        logged = {int(match[1]): (line, float(match[2])) for line in lines if (match := _JOEY_STEP.search(line.text))}
        steps = range(plan.warmup + plan.every, plan.warmup + plan.updates + 1, plan.every)
        tokens = sum(logged[step][1] * (logged[step][0].wall - logged[step - plan.every][0].wall) for step in steps)
        return between(
            tokens, logged[plan.warmup][0], logged[plan.warmup + plan.updates][0], parameters=num_parameters(lines)
        )

    def decode(self, setting: Setting, sentences: int) -> Measured:
        """Decode; there is no minimum length, but random parameters rarely end a sentence within 20 subwords."""
        testing = {"beam_size": setting.beam, "batch_size": setting.batch, "max_output_length": LENGTH}
        config = self._config("model", updates=1, every=1, rate=0.0) | {"testing": testing | {"beam_alpha": 1.0}}
        text = self.data.sources(sentences).read_text(encoding="utf-8")
        lines = stamped(self.python, "joeynmt", ["translate", self.write("decode", config)], text=text)
        outputs = [line.text for line in lines if SUBWORDS.fullmatch(line.text)]
        start, end = first(lines, r"Predicting \d+ example"), first(lines, r"Generation took")
        return between(sentences, start, end, length=mean_length(outputs))

    def _train(self, name: str, **training: Any) -> list[Any]:
        config = self.write(name, self._config(name, **training))
        return stamped(self.python, "joeynmt", ["train", config, "--skip-test"])

    def _config(self, name: str, *, updates: int, every: int, rate: float) -> dict[str, Any]:
        work, vocabulary = self.data.work, str(self.data.vocabulary)
        side = {"level": "word", "voc_file": vocabulary, "max_length": 200}
        layer = {"type": "recurrent", "rnn_type": "gru", "hidden_size": 512, "num_layers": 1, "dropout": 0.2}
        embeddings = {"embedding_dim": 256, "scale": False, "dropout": 0.2}
        return {
            "name": name,
            "model_dir": str(self.work / name),
            "use_cuda": False,
            "data": {
                "train": str(work / "train"),
                "dev": str(work / "valid"),
                "dataset_type": "plain",
                "src": {"lang": "en", **side},
                "trg": {"lang": "de", **side},
            },
            "testing": {"beam_size": 1},
            "training": {
                "optimizer": "adam",
                "learning_rate": rate,
                "learning_rate_min": 0.0,
                "scheduling": "exponential",
                "decrease_factor": 0.99,
                "label_smoothing": 0.1,
                "clip_grad_norm": 1.0,
                "batch_size": BATCH_SENTENCES,
                "batch_type": "sentence",
                "normalization": "tokens",
                "updates": updates,
                "epochs": 1,
                "logging_freq": every,
                "validation_freq": NEVER - NEVER % every,
                "overwrite": True,
            },
            "model": {
                "encoder": layer | {"bidirectional": True, "embeddings": embeddings},
                "decoder": layer
                | {"embeddings": embeddings, "attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True},
            },
        }


_JOEY_STEP = re.compile(r"Step:\s+(\d+),.*Tokens per Sec:\s+(\d+)")


class OpenNMT(Peer):
    """OpenNMT-py: its encoder has half as many units in each direction as the decoder."""

    name, title, encoder = "opennmt", "OpenNMT-py 3.5.1", 256
    batches = "64 sentences of similar length"

    def make_model(self) -> None:
        """Train for one update."""
        self._train("model", steps=1, every=1)

    def train(self) -> Measured:
        """Train; the log has the mean number of target tokens per batch since the line before."""
        plan = self.plan
        lines = self._train("speed", steps=plan.warmup + plan.updates, every=plan.every)
        logged = {int(match[1]): (line, float(match[2])) for line in lines if (match := _BATCH.search(line.text))}
        steps = range(plan.warmup + plan.every, plan.warmup + plan.updates + 1, plan.every)
        tokens = sum(logged[step][1] * plan.every for step in steps)
        return between(
            tokens, logged[plan.warmup][0], logged[plan.warmup + plan.updates][0], parameters=num_parameters(lines)
        )

    def decode(self, setting: Setting, sentences: int) -> Measured:
        """Decode outputs of exactly 20 subwords, timed from opening the file to the line with the scores."""
        source, output = self.data.sources(sentences), self.work / "output.txt"
        lines = self._decode(setting, source, output)
        outputs = output.read_text(encoding="utf-8").splitlines()
        return between(sentences, first(lines, "^opened "), first(lines, "PRED SCORE"), length=mean_length(outputs))

    def _train(self, name: str, *, steps: int, every: int) -> list[Any]:
        work, vocabulary = self.data.work, str(self.data.vocabulary)
        config = {
            "data": {"corpus": {"path_src": str(work / "train.en"), "path_tgt": str(work / "train.de")}},
            "src_vocab": vocabulary,
            "tgt_vocab": vocabulary,
            "share_vocab": True,
            "save_model": str(self.work / name),
            "save_data": str(self.work / f"{name}-data"),
            "overwrite": True,
            "encoder_type": "brnn",
            "decoder_type": "rnn",
            "rnn_type": "GRU",
            "word_vec_size": 256,
            "hidden_size": 512,
            "layers": 1,
            "global_attention": "mlp",
            "input_feed": 1,
            "dropout": [0.2],
            "label_smoothing": 0.1,
            "optim": "adam",
            "learning_rate": 0.001,
            "max_grad_norm": 1.0,
            "batch_type": "sents",
            "normalization": "tokens",
            "batch_size": BATCH_SENTENCES,
            "bucket_size": 32768,
            "num_workers": 0,
            "train_steps": steps,
            "valid_steps": NEVER,
            "save_checkpoint_steps": steps,
            "report_every": every,
        }
        return stamped(self.python, "onmt.bin.train", ["-config", self.write(name, config)])

    def _decode(self, setting: Setting, source: Path, output: Path) -> list[Any]:
        options = {
            "model": self.work / "model_step_1.pt",
            "src": source,
            "output": output,
            "beam_size": setting.beam,
            "batch_size": setting.batch,
            "batch_type": "sents",
            "min_length": LENGTH,
            "max_length": LENGTH,
            "max_length_ratio": 0,
            "gpu": -1,
        }
        arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        return stamped(self.python, "onmt.bin.translate", arguments, watch=source)


_BATCH = re.compile(r"Step\s+(\d+)/.*bsz:\s+\d+/\s*(\d+)/")


class Eole(OpenNMT):
    """Eole, the successor of OpenNMT-py, with the same log format."""

    name, title = "eole", "Eole 0.6.4"

    def _train(self, name: str, *, steps: int, every: int) -> list[Any]:
        work, vocabulary = self.data.work, str(self.data.vocabulary)
        layer = {"layers": 1, "hidden_size": 512, "rnn_type": "GRU"}
        config = {
            "data": {"corpus": {"path_src": str(work / "train.en"), "path_tgt": str(work / "train.de")}},
            "src_vocab": vocabulary,
            "tgt_vocab": vocabulary,
            "share_vocab": True,
            "save_data": str(self.work / f"{name}-data"),
            "overwrite": True,
            "report_every": every,
            "model": {
                "architecture": "custom",
                "embeddings": {"word_vec_size": 256},
                "encoder": layer | {"encoder_type": "brnn", "src_word_vec_size": 256},
                "decoder": layer | {"decoder_type": "rnn", "tgt_word_vec_size": 256, "global_attention": "mlp"},
                "input_feed": 1,
            },
            "training": {
                "model_path": str(self.work / name),
                "world_size": 0,
                "gpu_ranks": [],
                "compute_dtype": "fp32",
                "dropout": [0.2],
                "label_smoothing": 0.1,
                "optim": "adam",
                "learning_rate": 0.001,
                "max_grad_norm": 1.0,
                "batch_type": "sents",
                "normalization": "tokens",
                "batch_size": BATCH_SENTENCES,
                "bucket_size": 32768,
                "num_workers": 0,
                "train_steps": steps,
                "valid_steps": NEVER,
                "save_checkpoint_steps": steps,
            },
        }
        return stamped(self.python, "eole.bin.main", ["train", "--config", self.write(name, config)])

    def _decode(self, setting: Setting, source: Path, output: Path) -> list[Any]:
        options = {
            "model_path": self.work / "model",
            "src": source,
            "output": output,
            "beam_size": setting.beam,
            "batch_size": setting.batch,
            "batch_type": "sents",
            "min_length": LENGTH,
            "max_length": LENGTH,
            "max_length_ratio": 0,
            "world_size": 0,
            "compute_dtype": "fp32",
        }
        arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        return stamped(self.python, "eole.bin.main", ["predict", *arguments], watch=source)


PEERS: tuple[type[Peer], ...] = (JoeyNMT, OpenNMT, Eole)
