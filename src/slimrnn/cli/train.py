"""`slimrnn train`: a net on a task, in a new run directory."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimrnn.cli.duration import Budget, seconds
from slimrnn.cli.option_classes import config_of, run_options
from slimrnn.cli.parsing import parse
from slimrnn.cli.report import exit_code, show
from slimrnn.cli.settings import starting_point
from slimrnn.training.launch import my_place

USAGE = """usage: slimrnn train TASK [OPTIONS]
       slimrnn train MODULE:CLASS [OPTIONS]
       slimrnn train --config FILE [OPTIONS]

Train a net on a task. Everything about the run goes to a new directory."""


@dataclass(frozen=True)
class Options:
    """Train a net on a task. Everything about the run goes to a new directory."""

    config: Path | None = None
    """settings from this YAML file or run.json; options override them"""
    budget: Budget = None
    """time limit, such as 90s, 10m or 1h30m; slimrnn resume continues"""


def run(arguments: Sequence[str]) -> int:
    """Train, and print the result."""
    filled = _filled(arguments)
    budget = seconds(filled.budget)
    from slimrnn.training.run import train  # what it imports, --help can do without

    config = config_of(filled)
    result = train(config, shlex.join(["slimrnn", "train", *arguments]), budget)
    show(result, config.task)
    return exit_code(result)


def _filled(arguments: Sequence[str]) -> Any:
    """The options, whose defaults depend on the data where the task says so: these are read once the file is known."""
    start, rest = starting_point(arguments, "train", USAGE)
    prog = f"slimrnn train {start.task.name}"
    filled = parse(run_options(Options(), start), rest, prog, compact=True)
    if filled.config is not None:  # settings of a file stay as they are
        return filled
    suited, why = filled.task.suited_config()
    if not why:
        return filled
    if my_place().rank == 0:
        print(f"{why}\n")
    return parse(run_options(Options(), suited), rest, prog, compact=True)
