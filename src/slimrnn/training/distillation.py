"""Distillation: a net learns the outputs of another, its teacher, instead of the targets (Hinton et al. 2015).

loss = KL(softmax(teacher's output) ‖ softmax(output))   where targets are classes, else the squared error
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._texts import shown
from slimrnn.errors import ConfigError
from slimrnn.training.config import Config, ModelConfig
from slimrnn.training.nets import read_net
from slimrnn.training.record import Run
from slimrnn.training.task import Batch, Score, Task


class Distillation(nn.Module):
    """The loss of a batch, as `Objective`, and the states of both nets to continue from."""

    def __init__(self, config: Config, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        device = next(model.parameters()).device
        self.teacher = [read_teacher(config).to(device).eval().requires_grad_(False)]  # in a list: no part of the net

    def forward(self, batch: Batch, state: Any) -> tuple[Score, Any]:
        ours, theirs = (None, None) if state is None else state
        output, ours = self.model(batch.inputs, ours, batch.lengths)
        with torch.no_grad():
            wanted, theirs = self.teacher[0](batch.inputs, theirs, batch.lengths)
        return distance(output, wanted, batch), each(Tensor.detach, (ours, theirs))


def distance(output: Tensor, wanted: Tensor, batch: Batch) -> Score:
    """Of the outputs of two nets, over the steps or sequences that count."""
    if has_classes(output, batch):
        theirs = wanted.log_softmax(-1)
        apart = (theirs.exp() * (theirs - output.log_softmax(-1))).sum(-1)
    else:
        apart = (output - wanted).square().mean(-1)
    weights = batch.weights
    if weights is None or weights.shape != apart.shape:
        return Score(apart.sum(), float(apart.numel()))
    return Score((apart * weights).sum(), weights.sum())


def has_classes(output: Tensor, batch: Batch) -> bool:
    """Whether the output is logits of classes, of which the targets are some."""
    return not batch.targets.is_floating_point() and batch.targets.shape == output.shape[:-1]


def can_distil(task: Task) -> bool:
    """Whether the loss of a task is one of the net's output alone."""
    return type(task).run is Task.run if task.distils is None else task.distils


def read_teacher(config: Config) -> nn.Module:
    """The best net of the run `config.teacher`, which is one on the same task."""
    assert config.teacher is not None
    if not can_distil(config.task):
        raise ConfigError(f"expected a task whose loss needs the net's output alone for a teacher, got {config.task}")
    run = Run(config.teacher)
    if (run.config.get("task") or {}).get("name") != config.task.name:
        raise ConfigError(f"expected a teacher that was trained on {config.task.name}, got {config.teacher}")
    values, known = run.config.get("model"), {field.name for field in fields(ModelConfig)}
    if not isinstance(values, dict) or not values.keys() <= known:
        raise ConfigError(f"expected the settings of a net in {config.teacher}, got {shown(values)}")
    given: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in values.items()}
    model = ModelConfig(**given)
    return read_net(run.best_weights, replace(config, model=model, start_from=None, teacher=None))


def each(change: Callable[[Tensor], Tensor], state: Any) -> Any:
    """A state with all its tensors changed."""
    if isinstance(state, Tensor):
        return change(state)
    if isinstance(state, tuple | list):
        return type(state)(each(change, part) for part in state)
    return state
