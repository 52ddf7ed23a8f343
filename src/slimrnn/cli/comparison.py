"""Runs of one task side by side: the table and the plot of `slimrnn compare`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from slimrnn._palette import COLORS
from slimrnn.cli.report import number, table
from slimrnn.tasks import config_from_dict
from slimrnn.training.config import Config
from slimrnn.training.files import writing
from slimrnn.training.plots import Line, describe_task, draw_curves, label_ends, save, styled
from slimrnn.training.progress import in_words
from slimrnn.training.record import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TWO_LINED = 6  # with more runs, a label has one line


@dataclass(frozen=True)
class Contestant:
    """A run and the name that the table and the plot give it."""

    name: str
    run: Run

    @cached_property
    def config(self) -> Config:
        return config_from_dict(self.run.config)

    @property
    def parameters(self) -> int:
        return self.run.parameters

    @property
    def progress(self) -> tuple[float, float]:
        """Updates and seconds, of a run that has not ended as of its last evaluation."""
        if self.run.result is not None:
            return self.run.result.updates, self.run.result.seconds
        curve = self.run.curve
        return (curve["update"][-1], curve["seconds"][-1]) if curve.get("update") else (0, 0.0)

    def score(self, split: str, name: str) -> float | None:
        """Of the best net; of a run that has not ended, at its last evaluation."""
        if self.run.result is not None:
            return self.run.result.best.get(split, {}).get(name)
        return next(reversed(self.run.curve.get(f"{split}/{name}", [])), None)


def comparison_table(contestants: Sequence[Contestant]) -> str:
    """Parameters, updates, time and the scores on the test sets, a row for each run."""
    splits = contestants[0].config.task.test_sets
    names = dict.fromkeys(
        column.partition("/")[2] for one in contestants for column in one.run.curve if column.startswith("valid/")
    )
    columns = [(split, name) for split in splits for name in names]
    rows = [["", "parameters", "updates", "time", *(f"{split} {name.replace('_', ' ')}" for split, name in columns)]]
    for one in contestants:
        updates, seconds = one.progress
        scores = (number(one.score(split, name)) for split, name in columns)
        rows.append([one.name, f"{one.parameters:,}", f"{updates:,.0f}", in_words(seconds), *scores])
    for rival, found in _rivals(contestants).items():
        rows.append([rival, "", "", "", *(number(found[split].get(name)) for split, name in columns)])
    return table(rows)


def plot_comparison(contestants: Sequence[Contestant], path: Path) -> None:
    """The losses on the validation set, with the task's baselines."""
    from matplotlib.figure import Figure  # takes a while, and is only needed here

    figure = Figure(figsize=(8, 5), dpi=160)
    axes = figure.add_subplot()
    draw_comparison(axes, contestants)
    styled(axes, describe_task(contestants[0].run.config["task"]))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


def draw_comparison(axes: Axes, contestants: Sequence[Contestant], loss: str = "loss") -> None:
    """Curves that carry their names and numbers of parameters."""
    between = "\n" if len(contestants) <= TWO_LINED else ": "
    lines: list[Line] = []
    ends: list[tuple[str, float, str]] = []
    for one, color in zip(contestants, itertools.cycle(COLORS)):
        curve = one.run.curve
        lines.append(Line(one.name, curve.get("update", []), curve.get("valid/loss", []), color))
        last = next((value for value in reversed(lines[-1].values) if math.isfinite(value)), None)
        if last is not None:
            ends.append((f"{one.name}{between}{one.parameters:,} parameters", last, color))
    draw_curves(axes, lines, _baselines(contestants), ylabel=f"{loss} on the validation set")
    label_ends(axes, ends)


def _rivals(contestants: Sequence[Contestant]) -> dict[str, dict[str, dict[str, float]]]:
    """What to compare with, by set and score: one for all runs, or each run's where lengths and the like differ."""
    tasks = {one.name: one.config.task for one in contestants}
    found = {name: {split: task.rivals(split) for split in task.test_sets} for name, task in tasks.items()}
    first = found[contestants[0].name]
    labelled = {f" ({name})": sets for name, sets in found.items()}
    return {
        rival + label: {split: rivals[rival] for split, rivals in sets.items()}
        for label, sets in ({"": first} if all(sets == first for sets in found.values()) else labelled).items()
        for rival in next(iter(sets.values()), {})
    }


def _baselines(contestants: Sequence[Contestant]) -> dict[str, float]:
    """Those of the task, or of each run's where lengths and the like differ."""
    if len({one.config.task for one in contestants}) == 1:
        return contestants[0].config.task.baselines
    return {f"{name} ({one.name})": loss for one in contestants for name, loss in one.config.task.baselines.items()}
