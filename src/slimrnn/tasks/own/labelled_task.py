"""What classification and tagging share: classes, their weights, scores, the confusion matrix.

Shape suffixes: T time, B sequences, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from slimrnn._texts import decimal, listed, shown
from slimrnn.errors import DataError
from slimrnn.tasks.averages import average
from slimrnn.tasks.own.label_scores import accuracy, confusion, macro_f1
from slimrnn.tasks.own.outputs import outputs_of
from slimrnn.tasks.own.sequences_task import SequencesTask
from slimrnn.training.task import Batch, Score


@dataclass(frozen=True)
class LabelledTask(SequencesTask):
    """A task whose labels are classes."""

    class_weights: bool = False
    """rare classes count more in the loss, so that all classes count alike"""

    monitor = "loss"

    # --- classes ----------------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Labels of the training part, in order; class k is label k."""
        found = np.unique(self.labels_of("train"))
        if len(found) < 2:
            raise DataError(f"expected at least two different labels in the training part, got {listed(found)}")
        names = [str(name) for name in found]
        numbers = [decimal(name) for name in names]
        if None not in numbers:
            names = [name for _, name in sorted(zip(numbers, names, strict=True))]
        return tuple(names)

    def labels_of(self, split: str) -> NDArray[Any]:
        """The labels of a part as texts, one after the other."""
        raise NotImplementedError

    def numbers_of(self, labels: NDArray[Any], where: str) -> NDArray[np.int64]:
        """Classes by number; −1 where there is no label."""
        places = {name: place for place, name in enumerate(self.classes)}
        known, inverse = np.unique(labels.astype(str), return_inverse=True)
        for label in known:
            if label and label not in places:
                raise DataError(
                    f"expected labels of the training part ({listed(self.classes)}), got {shown(str(label))} in {where}"
                )
        return np.array([places.get(str(label), -1) for label in known], dtype=np.int64)[inverse.reshape(-1)]

    @property
    def output_size(self) -> int:
        return len(self.classes)

    @cached_property
    def frequencies(self) -> NDArray[np.float64]:
        """Of the classes in the training part."""
        numbers = self.numbers_of(self.labels_of("train"), "the training part")
        counts = np.bincount(numbers[numbers >= 0], minlength=self.output_size)
        shares: NDArray[np.float64] = counts / counts.sum()
        return shares

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"classes": list(self.classes)}

    def remember(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return super().remember(facts) | {"classes": tuple(map(str, facts["classes"]))}

    # --- scores -----------------------------------------------------------------------------------------

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """Cross-entropy in nats and accuracy."""
        logits, targets = output.reshape(-1, output.shape[-1]), batch.targets.reshape(-1)
        weights = batch.weights
        losses = functional.cross_entropy(logits, targets, reduction="none").view_as(batch.targets)
        correct = (output.argmax(-1) == batch.targets).to(output.dtype)
        in_loss = weights
        if self.class_weights:
            rare = torch.from_numpy(1 / (self.output_size * self.frequencies)).to(losses)[batch.targets]
            in_loss = rare if weights is None else rare * weights.to(rare)
        return {"loss": average(losses, in_loss), "accuracy": average(correct, weights)}

    def kept(self, output: Tensor, batch: Batch) -> dict[str, Tensor]:
        """One confusion matrix for the batch."""
        answers, targets = output.argmax(-1).reshape(-1), batch.targets.reshape(-1)
        if batch.weights is not None:
            scored = batch.weights.reshape(-1) > 0
            answers, targets = answers[scored], targets[scored]
        return {"confusion": confusion(targets, answers, self.output_size)[None]}

    def pooled(self, kept: Mapping[str, Tensor]) -> dict[str, float]:
        return {"macro_f1": macro_f1(kept["confusion"].sum(0))}

    @property
    def baselines(self) -> dict[str, float]:
        try:
            return {name: scores["loss"] for name, scores in self.rivals("test").items()}
        except DataError:  # the file is gone
            return {}

    def rivals(self, split: str) -> dict[str, dict[str, float]]:
        """Always the most frequent class; its loss is that of the class frequencies."""
        numbers = self.numbers_of(self.labels_of(split), f"the {split} part")
        here = torch.from_numpy(numbers[numbers >= 0])
        counts = confusion(here, torch.full_like(here, int(self.frequencies.argmax())), self.output_size)
        losses = -np.log(self.frequencies)[here.numpy()]
        weights = 1 / self.frequencies[here.numpy()] if self.class_weights else np.ones(len(losses))
        loss = float(np.average(losses, weights=weights))
        return {"majority class": {"loss": loss, "accuracy": accuracy(counts), "macro_f1": macro_f1(counts)}}

    # --- predictions ------------------------------------------------------------------------------------

    @property
    def answer_columns(self) -> list[str]:
        return ["predicted", *(f"p({name})" for name in self.classes)]

    def named(self, output_BC: Tensor) -> list[list[str]]:
        """The class and all probabilities, a row for each output."""
        chances_BC = output_BC.double().softmax(-1).tolist()
        return [[self.classes[int(np.argmax(row))], *(f"{chance:.6f}" for chance in row)] for row in chances_BC]

    # --- what a run shows -------------------------------------------------------------------------------

    def illustrate(self, model: nn.Module, directory: Path) -> None:
        """confusion.csv and confusion.png, of the test part."""
        from slimrnn.tasks.own.figures import plot_confusion, write_confusion

        sequences, which = self.part("test")
        counts = torch.zeros(self.output_size, self.output_size, dtype=torch.int64)
        for indices, output, batch in outputs_of(self, model, sequences, which):
            del indices
            counts += self.kept(output, batch)["confusion"][0].cpu()
        write_confusion(counts, self.classes, directory / "confusion.csv")
        plot_confusion(counts, self.classes, directory / "confusion.png", self.title)
