"""From settings to a trained net: `train`, `resume` and `evaluate`."""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torch import nn

from slimrnn.errors import ConfigError, RunDirectoryError
from slimrnn.training.checks import check, check_budget
from slimrnn.training.config import Config
from slimrnn.training.engine import Job, score_weights, work
from slimrnn.training.launch import launch, my_place
from slimrnn.training.learner import net_to_train
from slimrnn.training.loop import Callback
from slimrnn.training.record import Result, Run, Scores, start_record
from slimrnn.training.run_files import writing


def train(
    config: Config,
    command: str | None = None,
    budget: float | None = None,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Train a net. Everything about the run goes to a new directory.

    `command` is recorded in run.json; `budget` is a time limit in seconds, after which the run can be resumed;
    `callbacks`, such as MemoryLog, are called after every update."""
    _check_processes(config)
    check_budget(budget)
    model, directory = net_to_train(config), config.out
    if my_place().rank == 0:  # the others write nothing
        directory = new_directory(config)
        start_record(directory, config, model, command)
    return _carry_out(Job(replace(config, out=directory), budget, quiet, callbacks=callbacks), model)


def resume(
    directory: Path | str,
    config: Config,
    budget: float | None = None,
    quiet: bool = False,
    command: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Continue a run that was stopped or killed; the result is the same as without the interruption.

    `config` holds the settings of the run; updates may be more, and devices and workers may differ. A complete run only
    returns its result. `command` is recorded in run.json."""
    run = Run(directory)
    check(config)
    check_budget(budget)
    _check_processes(config)
    run.check_continues(config)
    result = run.result
    if result is not None and result.ended == "finished" and config.updates <= result.updates:
        return result
    for ended, setting in (("target", "stop_at"), ("patience", "patience")):
        if result is not None and result.ended == ended and getattr(config, setting) == run.config.get(setting):
            return result
    command = command or shlex.join(sys.orig_argv)
    return _carry_out(Job(replace(config, out=run.directory), budget, quiet, command, callbacks))


def evaluate(directory: Path | str, config: Config, checkpoint: str = "best") -> Scores:
    """The scores of the best or the final net of a run, on the validation set and on all test sets."""
    if checkpoint not in ("best", "final"):
        raise ConfigError(f"expected checkpoint to be best or final, got {checkpoint!r}")
    run = Run(directory)
    check(config)
    run.check_continues(config)
    path = run.best_weights if checkpoint == "best" else run.directory / "final.safetensors"
    return score_weights(path, config)


def _check_processes(config: Config) -> None:
    """Processes started by torchrun count as devices."""
    world = my_place().world
    if world > 1 and config.devices not in (1, world):
        raise ConfigError(f"expected devices to be {world}, the processes that torchrun started, got {config.devices}")
    if world > 1:
        check(replace(config, devices=world))


def _carry_out(job: Job, model: nn.Module | None = None) -> Result:
    place, devices = my_place(), job.config.devices
    if place.world > 1 or devices == 1:
        return work(job, model)
    launch(work, (job,), devices)
    assert job.config.out is not None  # this process gave the directory its name
    result = Run(job.config.out).result
    assert result is not None  # the processes ended without an error
    return result


def _others(directory: Path, start: Path | None) -> Iterator[Path]:
    """What is in a directory beside the weights to begin with."""
    return (path for path in directory.iterdir() if start is None or path.resolve() != start.resolve())


def check_can_be_made(directory: Path) -> None:
    """Fail before the work, not after it, where a directory cannot be made. Nothing is left behind."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    with writing(directory):
        if missing:
            directory.mkdir(parents=True)
        for path in missing:
            path.rmdir()


def new_directory(config: Config) -> Path:
    """Create the run directory: `config.out`, or the first free name in runs/."""
    if config.out is not None:
        with writing(config.out):
            if config.out.exists() and (not config.out.is_dir() or any(_others(config.out, config.start_from))):
                raise RunDirectoryError(
                    f"{config.out} exists: choose another directory, or continue the run in it with slimrnn resume"
                )
            config.out.mkdir(parents=True, exist_ok=True)
        return config.out
    name = f"{config.task.name}-{config.model.cell}-{config.model.structure}".replace(":", ".")  # module:name
    for number in itertools.count(1):
        directory = Path("runs") / f"{name}-{number}"
        with writing(directory):
            directory.parent.mkdir(exist_ok=True)
            try:
                directory.mkdir()
            except FileExistsError:
                continue
        return directory
    raise AssertionError("unreachable")
