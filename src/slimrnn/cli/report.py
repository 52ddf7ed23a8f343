"""What came of a run, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slimrnn._texts import number, table
from slimrnn.training.launch import my_place
from slimrnn.training.progress import in_words
from slimrnn.training.task import Task

if TYPE_CHECKING:
    from slimrnn.training.record import Result

ENDS = {"target": "reached its target", "budget": "stopped by its budget", "patience": "stopped improving"}


def show(result: Result, task: Task, table: str | None = None) -> None:
    """Scores, what to compare them with, and where everything is; one of several processes speaks. `table` may stand
    for that of the scores."""
    if my_place().rank:
        return
    best = "" if result.best_update is None else f", best at update {result.best_update:,}"
    print(
        f"\n{ENDS.get(result.ended, result.ended)} after {result.updates:,} updates, {in_words(result.seconds)}{best}"
    )
    print(f"\n{table or scores_table(result.best, task)}\n\n{result.directory}")


def exit_code(result: Result) -> int:
    """As a shell has it: 130 for Ctrl-C."""
    return 130 if result.ended == "interrupted" else 0


def scores_table(scores: Mapping[str, Mapping[str, float]], task: Task) -> str:
    """A row for each set of sequences, and what to compare the scores on the test sets with."""
    names = list(dict.fromkeys(name for values in scores.values() for name in values))
    entries = {**scores}
    for split in task.test_sets:
        for name, values in task.rivals(split).items():
            is_new = entries.setdefault(name, values) != values  # the same on all sets: one row
            entries |= {f"{name} ({split})": values} if is_new else {}
    rows = [[entry, *(number(values.get(name)) for name in names)] for entry, values in entries.items()]
    return table([["", *(name.replace("_", " ") for name in names)], *rows])
