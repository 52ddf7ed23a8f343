"""Runs of one task side by side: the table and the plot of `slimrnn compare`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn._texts import number, table
from slimrnn.plotting import COLORS, label_ends, save, styled
from slimrnn.tasks.loading import run_config
from slimrnn.training.config import Config
from slimrnn.training.plots import Line, describe_task, draw_curves
from slimrnn.training.progress import in_words
from slimrnn.training.record import Run
from slimrnn.training.run_files import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TWO_LINED = 6  # up to so many runs, labels have two lines


@dataclass(frozen=True)
class Contestant:
    """A run and its name in the table and the plot."""

    name: str
    run: Run
    task: str | None = None  # where its class is now

    @cached_property
    def config(self) -> Config:
        return run_config(self.run, self.task)

    @property
    def parameters(self) -> int:
        return self.run.parameters

    @property
    def progress(self) -> tuple[float, float]:
        """Updates and seconds; for an unfinished run, at its last evaluation."""
        if self.run.result is not None:
            return self.run.result.updates, self.run.result.seconds
        curve = self.run.curve
        return (curve["update"][-1], curve["seconds"][-1]) if curve.get("update") else (0, 0.0)

    def score(self, split: str, name: str) -> float | None:
        """Score of the best net; for an unfinished run, at its last evaluation."""
        if self.run.result is not None:
            return self.run.result.best.get(split, {}).get(name)
        return next(reversed(self.run.curve.get(f"{split}/{name}", [])), None)


def comparison_table(entries: Sequence[Contestant]) -> str:
    """Parameters, updates, time and test scores, one row per run."""
    splits = entries[0].config.task.test_sets
    names = dict.fromkeys(
        column.partition("/")[2] for entry in entries for column in entry.run.curve if column.startswith("valid/")
    )
    columns = [(split, name) for split in splits for name in names]
    rows = [["", "parameters", "updates", "time", *(f"{split} {name.replace('_', ' ')}" for split, name in columns)]]
    for entry in entries:
        updates, seconds = entry.progress
        scores = (number(entry.score(split, name)) for split, name in columns)
        rows.append([entry.name, f"{entry.parameters:,}", f"{updates:,.0f}", in_words(seconds), *scores])
    for rival, sets in _rivals(entries).items():
        rows.append([rival, "", "", "", *(number(sets[split].get(name)) for split, name in columns)])
    return table(rows)


def plot_comparison(entries: Sequence[Contestant], path: Path) -> None:
    """Validation losses, with the task's baselines."""
    from matplotlib.figure import Figure  # takes a while, and is only needed here

    figure = Figure(figsize=(8, 5), dpi=160)
    axes = figure.add_subplot()
    draw_comparison(axes, entries)
    styled(axes, describe_task(entries[0].run.config["task"]))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


def draw_comparison(axes: Axes, entries: Sequence[Contestant], loss: str = "loss") -> None:
    """Learning curves, labelled by name and number of parameters."""
    between = "\n" if len(entries) <= TWO_LINED else ": "
    lines: list[Line] = []
    ends: list[tuple[str, float, str]] = []
    for entry, color in zip(entries, itertools.cycle(COLORS)):
        curve = entry.run.curve
        lines.append(Line(entry.name, curve.get("update", []), curve.get("valid/loss", []), color))
        last = next((value for value in reversed(lines[-1].values) if math.isfinite(value)), None)
        if last is not None:
            ends.append((f"{entry.name}{between}{entry.parameters:,} parameters", last, color))
    draw_curves(axes, lines, _baselines(entries), ylabel=f"{loss} on the validation set")
    label_ends(axes, ends)


def _rivals(entries: Sequence[Contestant]) -> dict[str, dict[str, dict[str, float]]]:
    """Baseline scores by test set; per run if the runs' tasks differ, in length for example."""
    tasks = {entry.name: entry.config.task for entry in entries}
    scores = {name: {split: task.rivals(split) for split in task.test_sets} for name, task in tasks.items()}
    first = scores[entries[0].name]
    labelled = {f" ({name})": sets for name, sets in scores.items()}
    return {
        rival + label: {split: rivals[rival] for split, rivals in sets.items()}
        for label, sets in ({"": first} if all(sets == first for sets in scores.values()) else labelled).items()
        for rival in next(iter(sets.values()), {})
    }


def _baselines(entries: Sequence[Contestant]) -> dict[str, float]:
    """Baseline losses of the task; per run if the tasks differ."""
    if len({entry.config.task for entry in entries}) == 1:
        return entries[0].config.task.baselines
    return {f"{name} ({entry.name})": loss for entry in entries for name, loss in entry.config.task.baselines.items()}
