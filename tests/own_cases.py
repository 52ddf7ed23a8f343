"""Small sequences whose labels can be learned, in memory and as files."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slimrnn.data.sequences import Sequences
from slimrnn.tasks.own import ClassifyTask, ForecastTask, OwnTask, RegressTask, TagTask
from slimrnn.training import Config, ModelConfig


def some_sequences(count: int = 24, kind: str = "classify", *, gaps: bool = True, seed: int = 0) -> Sequences:
    """Sequences of 5 to 9 steps and two columns; the label is the sign of a shift, the shift, or the sign of a step."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 10, count)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    shift = np.where(np.arange(count) % 3 == 0, 2.0, -1.0) + 0.1 * rng.standard_normal(count)
    values = rng.standard_normal((starts[-1], 2)).astype(np.float32)
    values[:, 0] += np.repeat(shift, lengths).astype(np.float32)
    if gaps:
        values[3, 1] = values[0, 0] = np.nan
    labels: Any = {
        "classify": np.where(shift > 0, "up", "down"),
        "regress": shift * 10,
        "tag": np.where(np.nan_to_num(values[:, 0]) > 0, "b", "a"),
        "forecast": None,
    }[kind]
    times = np.concatenate([np.arange(length) for length in lengths]).astype(np.float64)
    return Sequences(values, starts, ("x", "y"), tuple(f"s{i}" for i in range(count)), labels, times)


def some_series(count: int = 2, steps: int = 60, period: int = 6) -> Sequences:
    """Noisy waves with a trend."""
    rng = np.random.default_rng(1)
    t = np.arange(steps)
    rows = [
        10 * (i + 1) + np.sin(2 * np.pi * t / period) + 0.02 * t + 0.1 * rng.standard_normal(steps)
        for i in range(count)
    ]
    values = np.concatenate(rows)[:, None].astype(np.float32)
    starts = np.arange(count + 1) * steps
    return Sequences(
        values, starts, ("load",), tuple(f"house {i}" for i in range(count)), times=np.tile(t, count) * 1.0
    )


def tasks() -> dict[str, OwnTask]:
    """One of each."""
    return {
        "classify": ClassifyTask.of(some_sequences()),
        "classify in frames": ClassifyTask.of(some_sequences(), frame=2, noise=0.1, class_weights=True),
        "tag": TagTask.of(some_sequences(kind="tag")),
        "regress": RegressTask.of(some_sequences(kind="regress")),
        "forecast": ForecastTask.of(some_series(), horizon=3, period=(6,), context=12),
    }


def tiny(task: OwnTask, **changes: Any) -> Config:
    """Settings of a run that takes no time."""
    config = Config(
        task,
        ModelConfig("gru", 4),
        updates=6,
        batch_size=4,
        eval_every=2,
        checkpoint_every=2,
        valid_size=100,
        threads=1,
        tensorboard=False,
    )
    return replace(config, **changes)


def write_csv(sequences: Sequences, path: Path, label: str = "label") -> Path:
    """As a long table."""
    per_step = sequences.labels is not None and len(sequences.labels) == len(sequences.values)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "t", *sequences.columns, *([label] if sequences.labels is not None else [])])
        for number, name in enumerate(sequences.ids):
            for place in range(sequences.starts[number], sequences.starts[number + 1]):
                row: list[Any] = [name, int(sequences.times[place])]  # type: ignore[index]
                row += ["" if np.isnan(value) else float(value) for value in sequences.values[place]]
                if sequences.labels is not None:
                    row.append(sequences.labels[place if per_step else number])
                lines.writerow(row)
    return path
