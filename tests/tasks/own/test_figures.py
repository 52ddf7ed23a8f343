"""Figures of users' data: their names may be anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from own_cases import some_sequences, some_series, tiny, write_csv
from slimrnn.tasks.own import ClassifyTask, ForecastTask, OwnTask, RegressTask
from slimrnn.training import train

ODD = "a$^$_$b"  # as math, it has nothing before ^


@pytest.mark.parametrize("kind", ["classify", "forecast", "regress"])
def test_a_dollar_in_a_name_is_no_math(kind: str, tmp_path: Path) -> None:
    labelled = some_sequences(kind=kind)
    series = replace(some_series(), columns=(ODD,), ids=(ODD, f"{ODD} 2"))
    if kind == "classify":
        labelled = replace(labelled, labels=np.where(np.array(labelled.labels) == "up", ODD, "b"))
    file = write_csv(series if kind == "forecast" else labelled, tmp_path / f"{ODD}.csv")
    task: OwnTask = {
        "classify": ClassifyTask(file),
        "forecast": ForecastTask(file, horizon=3),
        "regress": RegressTask(file),
    }[kind]
    train(tiny(task, updates=1, out=tmp_path / "run"), quiet=True)
    name = {"classify": "confusion.png", "forecast": "forecast.png", "regress": "answers.png"}[kind]
    assert (tmp_path / "run" / name).exists()
