"""Sequence-to-sequence tasks: symbols in, other symbols out, of another length.

Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice, check_count, check_probability
from slimrnn.sequence import (
    PADDING,
    Constant,
    Curriculum,
    Decoder,
    Encoder,
    EncoderDecoder,
    ExponentialDecay,
    InverseSigmoidDecay,
    LinearDecay,
    Symbols,
)
from slimrnn.tasks.generated import GeneratedTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig
from slimrnn.training.task import Batch, Indices, Outcome, Score

Pair = tuple[Sequence[int], Sequence[int]]  # source and target


@dataclass(frozen=True)
class TransductionTask(GeneratedTask):
    """Base of sequence-to-sequence tasks: a subclass makes pairs of sequences. Encoder and decoder both have the
    model's settings. Training uses teacher forcing, evaluations decode greedily."""

    context: Literal["state", "input", "both"] = field(default="both", kw_only=True)
    """how the decoder gets the encoder's last state: as its initial state, as an input at each step, or both"""
    forcing: float = field(default=1.0, kw_only=True)
    """teacher forcing: probability that the decoder's input in training is the true previous symbol and not its own
    prediction; with a curriculum, at the first update"""
    curriculum: Literal["constant", "linear", "exponential", "inverse-sigmoid"] = field(
        default="constant", kw_only=True
    )
    """scheduled sampling: how that probability falls (Bengio et al. 2015)"""
    forcing_updates: int = field(default=1000, kw_only=True)
    """updates until it is zero (linear), divided by e (exponential) or 0.5 (inverse-sigmoid)"""

    default_updates: ClassVar[int]  #: of a run with default settings
    every_step = False
    monitor = "exact_match"
    lower_is_better = False
    test_sets = {"test": 5_000}  # noqa: RUF012 -- never changed

    def __post_init__(self) -> None:
        check_choice("context", self.context, ("state", "input", "both"))
        check_probability("forcing", self.forcing)
        check_choice("curriculum", self.curriculum, ("constant", "linear", "exponential", "inverse-sigmoid"))
        check_count("forcing_updates", self.forcing_updates)

    @property
    def schedule(self) -> Curriculum:
        """Probability of teacher forcing at an update, to be multiplied by `forcing`."""
        match self.curriculum:
            case "linear":
                return LinearDecay(1 / self.forcing_updates)
            case "exponential":
                return ExponentialDecay(math.exp(-1 / self.forcing_updates))
            case "inverse-sigmoid":
                return InverseSigmoidDecay.half_at(self.forcing_updates)
        return Constant()

    @property
    @abstractmethod
    def longest(self) -> int:
        """Length of the longest target."""

    @abstractmethod
    def pairs(self, split: str, key: int, indices: Indices) -> list[Pair]:
        """Sources and targets with these indices. No source is in two splits."""

    @property
    def baselines(self) -> dict[str, float]:
        """Uniform over the symbols and the end of sequence."""
        return {"uniform": math.log(self.output_size + 1)}

    def generate(self, split: str, key: int, indices: Indices) -> Batch:
        pairs = self.pairs(split, key, indices)
        sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        lengths = torch.tensor([len(source) for source in sources], dtype=torch.long)
        return Batch(_padded(sources, 0), _padded(targets, PADDING), lengths=lengths)

    def default_config(self) -> Config:
        model, optim = ModelConfig("gru", 128), OptimConfig(lr=2e-3, clip_norm=1.0, schedule="cosine")
        return Config(self, model, optim, self.default_updates, batch_size=64, eval_every=250, stop_at=1.0)

    def model(self, config: ModelConfig) -> nn.Module:
        from slimrnn.training.models.sequence_model import build_layers

        encoder = Encoder(lambda width: build_layers(width, config), Symbols(self.input_size))
        causal = replace(config, bidirectional=False)
        decoder = Decoder(
            lambda width: build_layers(width, causal),
            Symbols(self.output_size),
            context_size=encoder.context_size,
            context=self.context,
        )
        return EncoderDecoder(encoder, decoder)

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        assert isinstance(model, EncoderDecoder)  # what the task makes
        context = model.encoder(batch.inputs, batch.lengths)
        lengths_B = (batch.targets != PADDING).sum(0)
        forcing = self.forcing * self.schedule(batch.update) if model.training else 1.0
        losses = model.decoder.losses(batch.targets, context, lengths_B, forcing=forcing)
        scores = {"loss": Score(losses.sum(), (lengths_B + 1).sum().to(losses.dtype))}
        if not model.training:
            decoded = model.decoder.generate(context, max_length=self.longest)
            output = decoded.sequences.masked_fill(~decoded.finished, PADDING)
            scores |= self.scores(output, batch)
        return Outcome(scores), None

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """Exact match of whole sequences and accuracy per symbol; `output` (T, B) is the decoded symbols, padded."""
        time = max(len(output), len(batch.targets))
        decoded, targets = _of_length(output, time), _of_length(batch.targets, time)
        correct_TB, is_symbol_TB = decoded == targets, targets != PADDING
        return {
            "exact_match": Score(correct_TB.all(0).sum(), float(targets.shape[1])),
            "token_accuracy": Score((correct_TB & is_symbol_TB).sum(), is_symbol_TB.sum()),
        }

    def check(self, config: Config) -> None:
        if config.model.learn_initial_state and self.context != "input":
            raise ValueError("expected learn_initial_state only with context input, which does not set that state")
        if config.model.recurrent_dropout and (self.forcing < 1 or self.curriculum != "constant"):
            raise ValueError("expected no recurrent_dropout with scheduled sampling, which goes step by step, got both")


def _padded(rows: Sequence[Sequence[int]], padding: int) -> Tensor:
    """(T, B), with at least one step."""
    padded = np.full((len(rows), max((len(row) for row in rows), default=1)), padding, dtype=np.int64)
    for b, row in enumerate(rows):
        padded[b, : len(row)] = row
    return torch.from_numpy(padded.T.copy())


def _of_length(symbols_TB: Tensor, time: int) -> Tensor:
    return nn.functional.pad(symbols_TB, (0, 0, 0, time - len(symbols_TB)), value=PADDING)
