"""Parameters of estimators as settings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from slimrnn._checks import suggestion
from slimrnn._texts import shown
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.training.config import Config

PARTS = ("task", "model", "optim")
FILES = ("out", "tensorboard", "devices")  # of runs that have a directory
EVALUATIONS = 20  # of a run whose length is given


def changed(config: Config, settings: Mapping[str, Any]) -> Config:
    """The configuration with other values for some settings, by their names on the command line: "model.layers"."""
    for name, value in settings.items():
        part, dot, inner = str(name).partition(".")
        held: Any = getattr(config, part) if part in PARTS and dot else config
        known = sorted({field.name for field in fields(held)} - {*PARTS, *FILES})
        last = inner if held is not config else str(name)
        if last not in known:
            prefix = f"{part}." if held is not config else ""
            raise ValueError(
                f"expected a setting such as {prefix}{known[0]}, got {shown(name)}{suggestion(last, known)}"
            )
        new: Any = held.changed(**{last: value}) if isinstance(held, OwnTask) else replace(held, **{last: value})
        parts: dict[str, Any] = {part: new}
        config = new if held is config else replace(config, **parts)
    return config


def of_length(config: Config, updates: int | None, epochs: float | None) -> Config:
    """For so many updates, or so many times through the training set."""
    if updates is not None and epochs is not None:
        raise ValueError(f"expected updates or epochs, got both: {updates} and {epochs}")
    if epochs is not None:
        size = config.task.samples("train", config.seed).size
        if not epochs > 0 or size is None:
            raise ValueError(f"expected a positive number of epochs, got {epochs}")
        updates = -int(-epochs * size // config.batch_size)
    if updates is None:
        return config
    every = max(1, int(updates) // EVALUATIONS)
    return replace(config, updates=updates, eval_every=every, checkpoint_every=every)
