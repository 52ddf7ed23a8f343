"""Figures of users' data: their names may be anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from own_cases import some_series, tiny
from slimrnn.tasks.own import ForecastTask
from slimrnn.tasks.own.figures import plot_confusion, plot_numbers

ODD = "a$^$_$b"  # as math, it has nothing before ^


def test_a_dollar_in_a_class_or_title_is_no_math(tmp_path: Path) -> None:
    plot_confusion(torch.tensor([[2, 1], [0, 3]]), [ODD, "b"], tmp_path / "confusion.png", f"classify: {ODD}")
    plot_numbers(np.arange(3.0), np.arange(3.0), tmp_path / "answers.png", f"regress: {ODD}", {"mae": 0.0, "r2": 1.0})
    assert all((tmp_path / name).exists() for name in ("confusion.png", "answers.png"))


def test_a_dollar_in_a_column_is_no_math(tmp_path: Path) -> None:
    series = replace(some_series(1), columns=(ODD,))
    task = ForecastTask.of(series, horizon=3, time=ODD)
    task.illustrate(task.model(tiny(task).model), tmp_path)
    assert (tmp_path / "forecast.png").exists()
