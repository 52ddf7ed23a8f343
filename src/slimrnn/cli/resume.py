"""`slimrnn resume`: continue a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.duration import Budget, seconds
from slimrnn.cli.parsing import parse
from slimrnn.cli.report import exit_code, show
from slimrnn.cli.settings import TaskClass
from slimrnn.errors import UsageError
from slimrnn.tasks import run_config


@dataclass(frozen=True)
class Options:
    """Continue a run that was stopped or killed; the result is the same as without the interruption."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    updates: int | None = None
    """total number of updates, if more than before"""
    budget: Budget = None
    """time limit, such as 90s, 10m or 1h30m"""
    devices: int | None = None
    """number of processes"""
    threads: int | None = None
    """threads per process"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> int:
    """Train, and print the result."""
    options = parse(Options(), arguments, "slimrnn resume")
    budget = seconds(options.budget)
    from slimrnn.training.record import Run
    from slimrnn.training.run import resume

    config = run_config(Run(options.run), options.task)
    if options.updates is not None and options.updates < config.updates:
        raise UsageError(f"expected --updates of at least {config.updates:,}, got {options.updates:,}")
    given = {name: getattr(options, name) for name in ("updates", "devices", "threads")}
    config = replace(config, **{name: value for name, value in given.items() if value is not None})
    result = resume(options.run, config, budget, command=shlex.join(["slimrnn", "resume", *arguments]))
    show(result, config.task)
    return exit_code(result)
