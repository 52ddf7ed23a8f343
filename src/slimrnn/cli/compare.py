"""`slimrnn compare`: runs side by side, in a table and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass
from slimrnn.errors import UsageError
from slimrnn.tasks.comparison import Contestant, comparison_table, plot_comparison
from slimrnn.training.record import Run


@dataclass(frozen=True)
class Options:
    """Compare runs of one task: a table, and a plot of their learning curves."""

    runs: Positional[tuple[Path, ...]] = MISSING
    """directories of runs"""
    out: Path = Path("out/compare.png")
    """the plot: .png, .pdf or .svg"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> None:
    """Print the table, save the plot."""
    options = parse(Options(), arguments, "slimrnn compare")
    if options.out.suffix not in (".png", ".pdf", ".svg"):
        raise UsageError(f"expected --out to end in .png, .pdf or .svg, got {options.out}")
    if not options.runs:
        raise UsageError("expected the directories of some runs after slimrnn compare, got none")
    names = [directory.resolve().name for directory in options.runs]
    names = names if len(set(names)) == len(names) else [str(directory) for directory in options.runs]
    contestants = [
        Contestant(n, Run(directory), options.task) for n, directory in zip(names, options.runs, strict=True)
    ]
    tasks = sorted({one.config.task.name for one in contestants})
    if len(tasks) > 1:
        raise UsageError(f"expected runs of one task, got {' and '.join(tasks)}")
    print(comparison_table(contestants))
    plot_comparison(contestants, options.out)
    print(f"\nlearning curves: {options.out}")
