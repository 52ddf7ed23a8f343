"""Scores of a net on a set."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from training_cases import EchoTask, first_indices

from slimrnn.training import ModelConfig
from slimrnn.training.evaluation import measure


def test_scores_of_a_set_without_weight_are_no_numbers() -> None:
    """Such as a part of a table whose values are all missing."""
    task = EchoTask()
    batch = task.samples("valid", 0).fetch(first_indices(3))
    assert batch.weights is not None
    empty = replace(batch, weights=torch.zeros_like(batch.weights))
    model = task.model(ModelConfig("gru", 4))
    assert all(math.isnan(score) for score in measure(model, task, [empty]).values())
    assert measure(model, task, [empty, batch])["loss"] > 0
