"""`slimrnn eval`: the scores of a run's net on the test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.report import scores_table
from slimrnn.cli.settings import TaskClass
from slimrnn.tasks import run_config


@dataclass(frozen=True)
class Options:
    """Score a run's net on the validation set and on the test sets."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    checkpoint: Literal["best", "final"] = "best"
    """the net that was best on the validation set, or the last one"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> None:
    """Print a table."""
    options = parse(Options(), arguments, "slimrnn eval")
    from slimrnn.training.record import Run
    from slimrnn.training.run import evaluate

    config = run_config(Run(options.run), options.task)
    print(scores_table(evaluate(options.run, config, options.checkpoint), config.task))
