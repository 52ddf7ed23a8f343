"""The options of a command as one dataclass for tyro: its own, those of the task and those of the run.

tyro reads types, but the task's class is known only when the command runs, so these classes are made then."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any

import tyro

from slimrnn.training.config import Config
from slimrnn.training.task import Task


def with_options(command: Any, top: dict[str, Any], nested: dict[str, Any] | None = None) -> Any:
    """The dataclass `command` with more dataclasses as fields.

    The options of those in `nested` are prefixed with the field's name, `--model.hidden`; those in `top` are not."""
    nested = nested or {}
    members: list[Any] = [(name, Annotated[type(part), tyro.conf.arg(name="")]) for name, part in top.items()]
    members += [(name, type(part)) for name, part in nested.items()]
    options_class: Any = make_dataclass(
        "Options",
        members,
        bases=(type(command),),
        namespace={"__doc__": type(command).__doc__},
        frozen=True,
        kw_only=True,
    )
    return options_class(**_values(command), **top, **nested)


def run_options(command: Any, start: Config) -> Any:
    """All options of a run: the task's first, with those of the command."""
    hidden_task = tyro.conf.Suppress[tyro.conf.Fixed[Task]]
    run_class: Any = make_dataclass("Run", [("task", hidden_task, field())], bases=(Config,), frozen=True)
    return with_options(command, {"task": start.task, "run": run_class(**_values(start))})


def config_of(parsed: Any) -> Config:
    """The configuration of a run from the parsed options."""
    return Config(**_values(parsed.run) | {"task": parsed.task})


def _values(instance: Any) -> dict[str, Any]:
    return {f.name: getattr(instance, f.name) for f in fields(instance)}
