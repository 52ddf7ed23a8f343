"""`slimrnn train`: a net on a task, in a new run directory."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from slimrnn.cli.duration import Budget, seconds
from slimrnn.cli.option_classes import config_of, run_options
from slimrnn.cli.parsing import parse
from slimrnn.cli.report import exit_code, show
from slimrnn.cli.settings import starting_point
from slimrnn.tasks import Contestant, comparison_table, run_config
from slimrnn.tasks.own import OwnTask
from slimrnn.training.config import Config, plain
from slimrnn.training.launch import my_place
from slimrnn.training.record import Run
from slimrnn.training.torch_rival import NAME as RIVAL
from slimrnn.training.torch_rival import torch_rival

if TYPE_CHECKING:
    from slimrnn.training.record import Result

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
    """time limit, such as 90s, 10m or 1h30m; slimrnn resume continues. On classify, tag, regress and forecast: try
    several settings within that time, and keep the best by validation"""
    against: Literal["torch"] | None = None
    """afterwards train torch.nn.LSTM with as many parameters in the same way, for the table"""


def run(arguments: Sequence[str]) -> int:
    """Train, and print the result."""
    filled = _filled(arguments)
    budget = seconds(filled.budget)
    from slimrnn.training.run import train  # what it imports, --help can do without
    from slimrnn.training.search import best_of

    config, command = config_of(filled), shlex.join(["slimrnn", "train", *arguments])
    tries = [] if budget is None or filled.config is not None else config.task.variants(config)
    if tries and budget is not None and my_place().world == 1:
        result = best_of(tries, budget, command)
        config = replace(run_config(Run(result.directory)), out=result.directory)
    else:
        result = train(config, command, budget)
    show(result, config.task, _compared(result, config, command, filled.against))
    return exit_code(result)


def _compared(result: Result, config: Config, command: str, against: str | None) -> str | None:
    """A table with parameters and time, for tasks on the user's own data or where there is something to compare."""
    rivals = []
    if against is not None and result.ended not in ("budget", "interrupted"):
        from slimrnn.training.run import train

        rival = torch_rival(config, result.directory)
        if my_place().rank == 0:
            print(f"\n{RIVAL} of {rival.model.hidden} units")
        rivals = [Contestant(RIVAL, Run(train(rival, command, quiet=True).directory))]
    if not rivals and not isinstance(config.task, OwnTask):
        return None
    if my_place().rank:
        return ""
    return comparison_table([Contestant("ours", Run(result.directory)), *rivals])


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
    chosen = parse(run_options(Options(), suited), rest, prog, compact=True)
    if my_place().rank == 0:
        instead = _instead(suited, config_of(chosen))
        print(f"{why}\n" + (f"but as you chose: {instead}\n" if instead else ""))
    return chosen


def _instead(suited: Config, chosen: Config) -> str:
    """The options by which data and net are other than those that suit the data."""
    found: list[str] = []
    for part, prefix in (("task", ""), ("model", "model.")):
        before, after = plain(getattr(suited, part)), plain(getattr(chosen, part))
        differing = (name for name, value in after.items() if value != before[name])
        found += [f"--{prefix}{name.replace('_', '-')} {after[name]}" for name in differing]
    return ", ".join(found)
