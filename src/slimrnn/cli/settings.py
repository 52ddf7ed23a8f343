"""The settings that a command starts from: a task's defaults, or a file's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from slimrnn._texts import shown
from slimrnn.cli.tasks import listing
from slimrnn.errors import UsageError
from slimrnn.tasks import TASKS, config_from_dict, find_task, load_run
from slimrnn.training.config import Config
from slimrnn.training.task import Task

SomeTask = TypeVar("SomeTask", bound=Task)
TaskClass = Annotated[str | None, tyro.conf.arg(metavar="MODULE:CLASS")]


def starting_point(arguments: Sequence[str], command: str, usage: str) -> tuple[Config, list[str]]:
    """The settings to show as defaults, and the arguments that override them: all after the task's name."""
    rest = list(arguments)
    name = rest.pop(0) if rest and not rest[0].startswith("-") else _take("--task", rest)
    file = _value_of("--config", rest)
    if file is not None:
        config = load(Path(file))
        if name is not None and find_task(name) is not type(config.task):
            raise UsageError(f"expected the task of {file}, {config.task.name}, or none, got {name}")
        return config, rest
    if name is None:
        if {"-h", "--help", "-H", "--help-verbose"} & set(rest):
            print(f"{usage}\n\nTasks\n{listing()}\n\nslimrnn {command} TASK --help shows the options.")
            raise SystemExit(0)
        raise UsageError(f"expected a task ({', '.join(TASKS)}) or --config FILE after slimrnn {command}, got none")
    task = find_task(name)
    try:
        return task().default_config(), rest
    except TypeError as error:
        raise UsageError(f"expected a task whose options all have defaults, got {name}: {error}") from error


def load(file: Path) -> Config:
    """Settings from YAML or JSON: those of a run, or a whole run.json."""
    from slimrnn.cli.yaml_files import read_yaml

    content = read_yaml(file)
    if not isinstance(content, Mapping):
        raise UsageError(f"expected {file} to hold names and values, got {shown(content)}")
    inner = content.get("config")
    if isinstance(inner, Mapping):  # a run.json: another run needs another directory
        return config_from_dict({**inner, "out": None})
    return config_from_dict(content)


def trained_net(directory: Path, kind: type[SomeTask], task: str | None) -> tuple[SomeTask, Any]:
    """The task of a run, which must be of this kind, and its best net."""
    net, config = load_run(directory, task)
    if not isinstance(config.task, kind):
        raise UsageError(f"expected a run on {kind.name}, got {directory}, which is one on {config.task.name}")
    return config.task, net


def _take(option: str, arguments: list[str]) -> str | None:
    """What the option is set to; it is taken out of the arguments."""
    value = _value_of(option, arguments)
    if value is not None:
        place = next(i for i, argument in enumerate(arguments) if argument.partition("=")[0] == option)
        del arguments[place : place + 1 + (arguments[place] == option)]
    return value


def _value_of(option: str, arguments: list[str]) -> str | None:
    """What the option is set to: it decides what all others may be, so it is read before them."""
    for position, argument in enumerate(arguments):
        if argument == option:
            return next(iter(arguments[position + 1 :]), None)
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
    return None
