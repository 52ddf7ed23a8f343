"""`slimrnn train`: a net on a task, in a new run directory."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slimrnn.cli.duration import Budget, seconds
from slimrnn.cli.forms import run_config, run_form
from slimrnn.cli.parsing import parse
from slimrnn.cli.report import exit_code, show
from slimrnn.cli.settings import starting_point

USAGE = """usage: slimrnn train TASK [OPTIONS]
       slimrnn train MODULE:CLASS [OPTIONS]
       slimrnn train --config FILE [OPTIONS]

Train a net on a task and keep all about it in a new directory."""


@dataclass(frozen=True)
class Options:
    """Train a net on a task and keep all about it in a new directory."""

    config: Path | None = None
    """settings from this YAML file or run.json; options override them"""
    budget: Budget = None
    """stop in time, such as 90s, 10m or 1h30m; slimrnn resume goes on"""


def run(arguments: Sequence[str]) -> int:
    """Train, and show what came of it."""
    start, rest = starting_point(arguments, "train", USAGE)
    filled = parse(run_form(Options(), start), rest, f"slimrnn train {start.task.name}", compact=True)
    budget = seconds(filled.budget)
    from slimrnn.training.run import train  # what it imports, --help can do without

    config = run_config(filled)
    result = train(config, shlex.join(["slimrnn", "train", *arguments]), budget)
    show(result, config.task)
    return exit_code(result)
