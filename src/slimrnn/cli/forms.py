"""What the command line fills in: the dataclasses of the Python API, with the task's own options at the top level.

tyro reads types, and a task is known by its class only when the command runs: so these classes are made then."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from typing import Annotated, Any

import tyro

from slimrnn.training.config import Config
from slimrnn.training.task import Task


def form(own: Any, top: dict[str, Any], nested: dict[str, Any] | None = None) -> Any:
    """A dataclass with the command's own options (the fields of `own`) and those of the parts in it.

    The options of a part in `nested` begin with its name, `--model.hidden`; those in `top` do not."""
    nested = nested or {}
    members: list[Any] = [(name, Annotated[type(part), tyro.conf.arg(name="")]) for name, part in top.items()]
    members += [(name, type(part)) for name, part in nested.items()]
    made: Any = make_dataclass(
        "Form", members, bases=(type(own),), namespace={"__doc__": type(own).__doc__}, frozen=True, kw_only=True
    )
    return made(**_values(own), **top, **nested)


def run_form(own: Any, start: Config) -> Any:
    """The options of a run, first those of its task, with the command's own."""
    hidden_task = tyro.conf.Suppress[tyro.conf.Fixed[Task]]
    made: Any = make_dataclass("Run", [("task", hidden_task, field())], bases=(Config,), frozen=True)
    return form(own, {"task": start.task, "run": made(**_values(start))})


def run_config(filled: Any) -> Config:
    """The settings of the run from a form that was filled in."""
    return Config(**_values(filled.run) | {"task": filled.task})


def _values(instance: Any) -> dict[str, Any]:
    return {f.name: getattr(instance, f.name) for f in fields(instance)}
