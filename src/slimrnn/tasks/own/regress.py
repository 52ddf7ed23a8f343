"""Regression of a number for each of a user's sequences.

Shape suffixes: B sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_count
from slimrnn.data.own.number_text import LARGEST
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.tasks.averages import average
from slimrnn.tasks.own.classify import labels_of
from slimrnn.tasks.own.defaults import one_output_config
from slimrnn.tasks.own.outputs import outputs_of
from slimrnn.tasks.own.sequences_task import SequencesTask
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices, Score


@dataclass(frozen=True)
class RegressTask(SequencesTask):
    """Predict a number for each of your own sequences."""

    frame: int = 1
    """steps of the data that make one step of the net; slimrnn train chooses it by the length"""

    name = "regress"
    every_step = False
    numbers = True
    output_size = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("frame", self.frame)

    @property
    def stride(self) -> int:
        return self.frame

    @property
    def strata(self) -> NDArray[Any]:
        return _targets(self.sequences)

    @cached_property
    def target_scale(self) -> tuple[float, float]:
        """Mean and standard deviation of the training part's numbers: the net's output is in these units."""
        sequences, which = self.part("train")
        numbers = _targets(sequences)[which]
        return float(numbers.mean()), float(numbers.std()) or 1.0

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"target": list(self.target_scale)}

    def remember(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        mean, scale = map(float, facts["target"])
        return super().remember(facts) | {"target_scale": (mean, scale)}

    def batch(self, sequences: Sequences, which: Indices) -> Batch:
        inputs, lengths = self.inputs(sequences, which)
        mean, scale = self.target_scale
        targets = np.zeros(len(which))
        if sequences.labels is not None:
            targets = (_targets(sequences)[which] - mean) / scale
        return Batch(
            inputs,
            torch.from_numpy(targets.astype(np.float32))[:, None],
            lengths=lengths,
        )

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is Huber's of the standardised numbers, which a few far ones do not govern."""
        losses = functional.smooth_l1_loss(output, batch.targets, reduction="none")
        return {"loss": average(losses, batch.weights)}

    def kept(self, output: Tensor, batch: Batch) -> dict[str, Tensor]:
        rows = torch.cat([output, batch.targets], -1)
        return {"answers": rows if batch.weights is None else rows[batch.weights > 0]}

    def pooled(self, kept: Mapping[str, Tensor]) -> dict[str, float]:
        mean, scale = self.target_scale
        answers, numbers = (kept["answers"].double() * scale + mean).numpy().T
        return number_scores(answers, numbers)

    def rivals(self, split: str) -> dict[str, dict[str, float]]:
        """Always the mean of the training part."""
        sequences, which = self.part(split)
        numbers = _targets(sequences)[which]
        mean, scale = self.target_scale
        answers = torch.full((len(numbers), 1), 0.0, dtype=torch.float64)
        targets = torch.from_numpy((numbers - mean) / scale)[:, None]
        loss = float(functional.smooth_l1_loss(answers, targets))
        return {"mean": {"loss": loss, **number_scores(np.full_like(numbers, mean), numbers)}}

    @property
    def baselines(self) -> dict[str, float]:
        try:
            return {name: scores["loss"] for name, scores in self.rivals("test").items()}
        except DataError:  # the file is gone
            return {}

    def suited_config(self) -> tuple[Config, str]:
        return one_output_config(self, "a number")

    # --- predictions ------------------------------------------------------------------------------------

    answer_columns = ["predicted"]  # noqa: RUF012 -- never changed

    def answers(self, model: nn.Module, sequences: Sequences, which: Indices) -> Iterator[tuple[int, list[list[str]]]]:
        mean, scale = self.target_scale
        for indices, output_B1, _ in outputs_of(self, model, sequences, which):
            for index, answer in zip(indices.tolist(), output_B1[:, 0].double().tolist(), strict=True):
                yield index, [[f"{answer * scale + mean:.7g}"]]

    def illustrate(self, model: nn.Module, directory: Path) -> None:
        """answers.png: predictions of the test part over the true numbers."""
        from slimrnn.tasks.own.figures import plot_numbers

        sequences, which = self.part("test")
        rows = [self.kept(output, batch)["answers"] for _, output, batch in outputs_of(self, model, sequences, which)]
        mean, scale = self.target_scale
        answers, numbers = (torch.cat(rows).double().cpu() * scale + mean).numpy().T
        plot_numbers(answers, numbers, directory / "answers.png", self.title, number_scores(answers, numbers))


def number_scores(answers: NDArray[np.float64], numbers: NDArray[np.float64]) -> dict[str, float]:
    """Mean absolute error, root mean squared error, and the share of the variance that is explained."""
    errors = answers - numbers
    squared, variance = float(np.square(errors).mean()), float(np.var(numbers))
    r2 = 1 - squared / variance if variance else float("nan")
    return {"mae": float(np.abs(errors).mean()), "rmse": float(np.sqrt(squared)), "r2": r2}


def _targets(sequences: Sequences) -> NDArray[np.float64]:
    labels = labels_of(sequences)
    try:
        numbers = np.asarray(labels, dtype=np.float64)
    except ValueError as error:
        raise DataError(f"expected numbers as labels, got another: {error}") from None
    if not np.isfinite(numbers).all():
        place = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(f"expected a number as label of the sequence {sequences.ids[place]}, got {numbers[place]}")
    if (large := np.abs(numbers) > LARGEST).any():
        place = int(large.argmax())
        raise DataError(
            f"expected labels up to {LARGEST:.2g} in size, got {numbers[place]:.3g} of the sequence "
            f"{sequences.ids[place]}: write them in a larger unit"
        )
    return numbers
