"""Character language model of the Penn Treebank (low-rank paper §3.0.4, KRU §4.4) or of any text file.

Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_choice, check_count
from slimrnn.data.text import PTB_SYMBOLS, Text, read_ptb, read_text
from slimrnn.errors import ConfigError
from slimrnn.tasks.averages import average
from slimrnn.tasks.sentences import Sentences
from slimrnn.tasks.streams import Streams
from slimrnn.training.config import Config, ModelConfig
from slimrnn.training.task import Batch, Samples, Score, Task

SPLITS = ("train", "valid", "test")
LARGEST_EXPONENT = 700.0  # beyond, exp overflows


@dataclass(frozen=True)
class PTBCharsTask(Task):
    """Predict the next character of the Penn Treebank, or of any text file."""

    file: Path | None = None
    """a text file instead of the Penn Treebank: 90 % training, 5 % validation, 5 % test"""
    streams: int | None = None
    """read the text as this many parallel streams and carry the state over, with truncated backpropagation of bptt
    steps; by default every sentence (of a file: every line) starts from the initial state"""
    max_length: int | None = None
    """without streams: drop longer sentences (in characters) from training"""

    name = "ptb-chars"
    every_step = True

    def __post_init__(self) -> None:
        for option in ("streams", "max_length"):
            if getattr(self, option) is not None:
                check_count(option, getattr(self, option))
        if self.streams is not None and self.max_length is not None:
            raise ValueError(f"expected max_length only without streams, got {self.max_length} and {self.streams}")

    @property
    def symbols(self) -> str:
        """The alphabet: class k is character k."""
        return PTB_SYMBOLS if self.file is None else self.text("train").symbols

    @property
    def input_size(self) -> int:
        return len(self.symbols)

    @property
    def output_size(self) -> int:
        return len(self.symbols)

    @property
    def baselines(self) -> dict[str, float]:
        """Uniform over the alphabet."""
        return {"uniform": math.log(len(PTB_SYMBOLS))} if self.file is None else {}

    def text(self, split: str) -> Text:
        """The characters of a split."""
        return read_ptb(split) if self.file is None else read_text(Path(self.file), split)

    def samples(self, split: str, seed: int) -> Samples:
        check_choice("split", split, SPLITS)
        text = self.text(split)
        if self.streams is not None:
            if self.streams > len(text.tokens):
                raise ConfigError(f"expected at most {len(text.tokens):,} streams of {split}, got {self.streams:,}")
            return Streams(text, self.streams)
        sentences = Sentences.of(text, self.max_length if split == "train" else None)
        if sentences.size == 0:
            raise ConfigError(f"expected max_length of at least the shortest sentence's, got {self.max_length}")
        return sentences

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is the cross-entropy per character in nats; `derived` has it in bits. Of single sentences also the
        mean over sentences of each one's mean, as in the low-rank authors' code."""
        classes, targets = output.reshape(-1, output.shape[-1]), batch.targets.reshape(-1)
        losses_TB = functional.cross_entropy(classes, targets, reduction="none").view_as(batch.targets)
        scores = {"loss": average(losses_TB, batch.weights)}
        if batch.lengths is not None and batch.weights is not None:
            weights_TB = batch.weights.to(losses_TB.dtype)
            present_B = weights_TB.amax(0)  # a sequence that only fills up a batch has no weight
            means_B = (losses_TB.detach() * weights_TB).sum(0) / weights_TB.sum(0).clamp_min(1)
            scores["sentence_loss"] = average(means_B, present_B)
        return scores

    def derived(self, means: Mapping[str, float]) -> dict[str, float]:
        """Bits per character, the low-rank paper's perplexity per character, 2^bits, and the same of the mean over
        sentences."""
        nats = means["loss"]
        scores = {"bits_per_character": nats / math.log(2), "perplexity": _perplexity(nats)}
        if "sentence_loss" in means:
            scores["sentence_perplexity"] = _perplexity(means["sentence_loss"])
        return scores

    def check(self, config: Config) -> None:
        for split in SPLITS:
            self.samples(split, config.seed)
        if config.model.bidirectional:
            raise ValueError("expected one direction, got a bidirectional net, which sees the target")
        if self.streams is None:
            return
        if config.bptt is None:
            raise ValueError(f"expected bptt with {self.streams} streams, got none")
        if config.batch_size > self.streams:
            raise ValueError(f"expected batch_size of at most the {self.streams} streams, got {config.batch_size}")

    def check_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Refuse a net with another alphabet."""
        last = next((name for name in ("output.1.bias", "readout.bias") if name in weights), None)
        known = None if last is None else weights[last].numel()  # with a hidden layer the read-out's is not the last
        if known not in (None, self.output_size):
            found = f"{self.file} with {self.output_size}"
            raise ValueError(f"expected the text that the net was trained on, with {known} symbols, got {found}")

    def model(self, config: ModelConfig) -> nn.Module:
        from slimrnn.training.models.symbol_model import SymbolModel

        return SymbolModel(self.input_size, self.output_size, config, every_step=True)


def _perplexity(nats: float) -> float:
    return math.exp(min(nats, LARGEST_EXPONENT))
