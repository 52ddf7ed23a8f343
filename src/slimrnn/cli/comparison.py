"""Runs of one task side by side: the table and the plot of `slimrnn compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from slimrnn.cli.report import number, table
from slimrnn.tasks import config_from_dict
from slimrnn.training.config import Config
from slimrnn.training.files import writing
from slimrnn.training.plots import Line, describe_task, plot_curves
from slimrnn.training.progress import in_words
from slimrnn.training.record import Run


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
        return int(self.run.record["parameters"]["total"])

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


def plot_comparison(
    contestants: Sequence[Contestant], path: Path, title: str = "", subtitle: str = "", loss: str = "loss"
) -> None:
    """The losses on the validation set, with the task's baselines."""
    lines = [
        Line(f"{one.name}: {one.parameters:,} parameters", one.run.curve["update"], one.run.curve["valid/loss"])
        for one in contestants
        if one.run.curve
    ]
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    title = title or describe_task(contestants[0].run.config["task"])
    plot_curves(lines, path, title, subtitle, _baselines(contestants), ylabel=f"{loss} on the validation set")


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
