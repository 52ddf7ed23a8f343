"""`slimrnn resume`: go on with a run, as if it had not been stopped."""

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
    """Go on with a run that was stopped in whatever way, as if it had not been."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    updates: int | None = None
    """updates in all, if more than it began with"""
    budget: Budget = None
    """stop in time, such as 90s, 10m or 1h30m"""
    devices: int | None = None
    """processes to train in"""
    threads: int | None = None
    """threads of each process"""
    task: TaskClass = None
    """where the task's class is now, module:Class, if not where run.json says"""


def run(arguments: Sequence[str]) -> int:
    """Train on, and show what came of it."""
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
