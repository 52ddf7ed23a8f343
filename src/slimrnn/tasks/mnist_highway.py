"""MNIST as vectors of 784 pixels, for highway layers (low-rank paper A.1).

The net does not know which pixels are neighbours. Shape suffixes: B images, O classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_choice, check_number, check_probability
from slimrnn.data.mnist import CLASSES, SIDE, load_mnist_split
from slimrnn.tasks.averages import average
from slimrnn.training.config import Config, ModelConfig
from slimrnn.training.task import Batch, Indices, Outcome, Samples, Score, Task

PIXELS = SIDE * SIDE


@dataclass(frozen=True)
class MnistHighwayTask(Task):
    """Classify handwritten digits from all pixels at once, by highway layers."""

    batch_norm: bool = True
    """batch normalisation after every matrix but the read-out"""
    transform_bias: float = -1.0
    """initial bias of the transform gates; negative: layers start close to the identity"""
    input_dropout: float = 0.0
    """dropout rate of the pixels"""
    output_dropout: float = 0.0
    """dropout rate before the read-out"""
    l2: float = 1e-3
    """weight decay of the read-out's matrix: l2 times its sum of squares is added to the training loss"""

    name = "mnist-highway"
    every_step = False
    monitor = "accuracy"
    lower_is_better = False
    input_size = PIXELS
    output_size = CLASSES

    def __post_init__(self) -> None:
        check_number("transform_bias", self.transform_bias)
        check_probability("input_dropout", self.input_dropout)
        check_probability("output_dropout", self.output_dropout)
        check_number("l2", self.l2)
        if self.l2 < 0:
            raise ValueError(f"expected l2 to be at least 0, got {self.l2}")

    @property
    def baselines(self) -> dict[str, float]:
        """The best constant is −0.8 for each class, at a loss of 4 p (1 − p) with p = 1/10."""
        return {"guessing": 4 * (1 - 1 / CLASSES)}

    def samples(self, split: str, seed: int) -> Samples:
        """Images in the order of the files, for any seed."""
        check_choice("split", split, ["train", "valid", *self.test_sets])
        return _Samples(split, len(load_mnist_split(split)[0]))

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is the squared hinge, summed over the classes (Tang 2013)."""
        signs_BO = 2 * functional.one_hot(batch.targets, CLASSES).to(output.dtype) - 1
        losses = (1 - signs_BO * output).clamp_min(0).square().sum(-1)
        correct = (output.argmax(-1) == batch.targets).to(output.dtype)
        return {"loss": average(losses, batch.weights), "accuracy": average(correct, batch.weights)}

    def run(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[Outcome, Any]:
        """Adds the L2 penalty in training."""
        outcome, state = super().run(model, batch, state)
        if not (model.training and self.l2):
            return outcome, state
        total, weight = outcome.scores["loss"]
        readout = getattr(model, "readout", None)
        if not isinstance(readout, nn.Linear):
            raise TypeError(f"expected a net with a linear readout for l2, got {type(model).__name__}")
        loss = Score(total + weight * self.l2 * readout.weight.square().sum(), weight)
        return Outcome({**outcome.scores, "loss": loss}, outcome.kept), state

    def check(self, config: Config) -> None:
        for option, usual in (("penalty", 0), ("recurrent_rate", 1), ("readout_only", False)):
            value = getattr(config.optim, option)
            if value != usual:
                raise ValueError(f"expected {option} {usual} without recurrent matrices, got {value}")
        if self.batch_norm and config.devices > 1:
            raise ValueError(
                f"expected one process with batch_norm, which needs the whole batch, got {config.devices} devices"
            )
        if self.batch_norm and config.batch_size < 2:
            raise ValueError(f"expected batch_size of at least 2 with batch_norm, got {config.batch_size}")

    def default_model(self) -> ModelConfig:
        return ModelConfig("highway", nonlinearity="relu")

    def model(self, config: ModelConfig) -> nn.Module:
        from slimrnn.training.models.highway_model import HighwayModel

        return HighwayModel(
            self.input_size,
            self.output_size,
            config,
            batch_norm=self.batch_norm,
            transform_bias=self.transform_bias,
            input_dropout=self.input_dropout,
            output_dropout=self.output_dropout,
        )


@dataclass(frozen=True)
class _Samples:
    """Holds no images, so it is cheap to send to a worker process."""

    split: str
    size: int

    def fetch(self, indices: Indices) -> Batch:
        images, labels = load_mnist_split(self.split)
        pixels = np.divide(images[indices].reshape(-1, PIXELS), np.float32(255), dtype=np.float32)
        return Batch(torch.from_numpy(pixels)[None], torch.from_numpy(labels[indices].astype(np.int64)))
