"""The best of a few settings within a time, by the score on the validation set."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from slimrnn.errors import ConfigError, TrainingDiverged, TrainingError
from slimrnn.training.checks import build_model, check, check_budget
from slimrnn.training.config import Config
from slimrnn.training.record import Result, Run
from slimrnn.training.run import new_directory, train
from slimrnn.training.run_files import writing

TRIES = "tries"  # where the runs are that were not the best


def best_of(
    configs: Sequence[Config], budget: float, command: str | None = None, say: Callable[[str], Any] = print
) -> Result:
    """Train with one setting after the other while there is time for a whole run; the first is always trained. The best
    run gets the directory of the first setting, and the others are in `tries` there. Settings that are impossible, but
    for the first, are left out, and a run that fails does not end the search."""
    check_budget(budget)
    deadline, longest = time.monotonic() + budget, 0.0
    configs = _possible(configs, say)
    directory = new_directory(configs[0])
    found: list[tuple[float, Path]] = []
    problem: TrainingError | None = None
    for number, config in enumerate(configs, 1):
        left = deadline - time.monotonic()
        if found and left < 1.2 * longest:
            say(f"no time for {len(configs) - number + 1} more")
            break
        start, place = time.monotonic(), directory / TRIES / str(number)
        try:
            result = train(replace(config, out=place), command, max(0.0, left), quiet=number > 1)
        except TrainingError as error:
            problem = error
            say(f"{number} of {len(configs)}: {error}")
            continue
        longest = max(longest, time.monotonic() - start)
        if not found or result.ended not in ("budget", "interrupted"):
            found.append((_score(result, config), place))
            say(f"{number} of {len(configs)}: validation {config.task.monitor} {found[-1][0]:.4g}, {place}")
        if result.ended == "interrupted":
            break
    if not found:
        if problem is not None and not isinstance(problem, TrainingDiverged):
            raise problem
        raise TrainingDiverged("expected a setting that can be trained, got none: try a smaller --optim.lr")
    sign = 1 if configs[0].task.lower_is_better else -1
    return _moved_up(min(found, key=lambda one: _order(sign * one[0]))[1], directory)


def _possible(configs: Sequence[Config], say: Callable[[str], Any]) -> list[Config]:
    """The settings whose net can be built; the first must be one of them, since it is the user's."""
    kept: list[Config] = []
    for config in configs:
        try:
            check(config)
            build_model(config)
        except ConfigError as error:
            if not kept:
                raise
            say(f"one setting is left out: {error}")
            continue
        kept.append(config)
    return kept


def _order(score: float) -> float:
    """Scores that are no numbers come last."""
    return math.inf if math.isnan(score) else score


def _score(result: Result, config: Config) -> float:
    return result.best["valid"][config.task.monitor]


def _moved_up(best: Path, directory: Path) -> Result:
    """The files of the best run to the directory that has the name."""
    with writing(directory):
        for path in best.iterdir():
            shutil.move(path, directory / path.name)
        best.rmdir()
        if not any((directory / TRIES).iterdir()):
            (directory / TRIES).rmdir()
    run = Run(directory)
    run.write(config=run.config | {"out": str(directory)})
    result = run.result
    assert result is not None  # its training ended
    return result
