"""Convert configurations to plain dicts, for JSON and YAML, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from slimrnn._checks import suggestion
from slimrnn._texts import shown
from slimrnn.errors import ConfigError
from slimrnn.tasks.registry import TASKS, find_task
from slimrnn.training.config import Config, plain
from slimrnn.training.task import Task

_ACCEPTED: dict[type, Any] = {int: Integral, float: Real, Path: (str, Path)}
_IN_WORDS = {int: "an int", float: "a number", bool: "true or false", str: "a text", Path: "a path"}


def config_to_dict(config: Config) -> dict[str, Any]:
    """All settings as numbers, strings, lists and dicts; a task becomes its name and its options."""
    values: dict[str, Any] = plain(config)
    return values


def config_from_dict(values: Mapping[str, Any]) -> Config:
    """The inverse. Missing settings take the task's defaults; unknown options and wrong types raise a ConfigError."""
    config: Config = _build(Config, _filled(values), "")
    return config


def _filled(values: object) -> object:
    """Add the task's defaults, also inside the model's and the optimizer's settings."""
    if not isinstance(values, Mapping) or "task" not in values:
        return values
    filled = plain(_read_task(values["task"], "task").default_config())
    for name, value in values.items():
        inner = filled.get(name)
        both = isinstance(inner, dict) and isinstance(value, Mapping) and name != "task"
        filled[name] = {**inner, **value} if both else value
    return filled


def _build(cls: type[Any], values: object, where: str) -> Any:
    """A dataclass from a dict; `where` is the path to the dict, for error messages."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"expected {where or 'a configuration'} to be a dict, got {shown(values)}")
    known: dict[str, Field[Any]] = {field.name: field for field in fields(cls)}
    for name in values:
        if name not in known:
            owner = f" of {where}" if where else ""
            listed = ", ".join(known) or "none"
            raise ConfigError(f"expected an option{owner} ({listed}), got {shown(name)}{suggestion(name, known)}")
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(f"expected {_path(where, name)} to be given, got none")
    hints = get_type_hints(cls)
    read = {name: _read(hints[name], value, _path(where, name)) for name, value in values.items()}
    try:
        return cls(**read)
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from None


def _read(kind: Any, value: object, where: str) -> Any:
    """Convert `value` to the annotated type `kind`, or raise a ConfigError."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Task:
        return _read_task(value, where)
    if is_dataclass(kind):
        return _build(kind, value, where)  # type: ignore[arg-type]
    if origin in (Union, UnionType):
        if value is None and NoneType in parts:
            return None
        if str in parts and isinstance(value, str) and _number(value) is value:  # a text that is no number
            return value
        others = [part for part in parts if part is not NoneType]
        lists = [part for part in others if get_origin(part) is tuple]
        return _read(lists[0] if lists and isinstance(value, list | tuple) else others[0], value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"expected {where} to be a list, got {shown(value)}")
        return tuple(_read(parts[0], item, where) for item in value)
    if origin is Literal:
        if value not in parts:
            listed = ", ".join(map(str, parts))
            raise ConfigError(f"expected {where} to be one of {listed}, got {shown(value)}{suggestion(value, parts)}")
        return value
    return _read_scalar(kind, value, where)


def _read_task(value: object, where: str) -> Task:
    if not isinstance(value, Mapping) or "name" not in value:
        raise ConfigError(
            f"expected {where} to be a dict with the name of a task ({', '.join(TASKS)}), got {shown(value)}"
        )
    options = {name: option for name, option in value.items() if name not in ("name", "class")}
    if not isinstance(value.get("class", ""), str):
        raise ConfigError(f"expected {where}.class to be a text such as module:Class, got {shown(value['class'])}")
    task: Task = _build(find_task(value.get("class", value["name"])), options, where)
    return task


def _read_scalar(kind: type[Any], value: object, where: str) -> Any:
    if kind is float and isinstance(value, str):
        value = _number(value)
    if isinstance(value, _ACCEPTED.get(kind, kind)) and (kind is bool) == isinstance(value, bool):
        if issubclass(kind, Path):
            _check_path(str(value), where)
        try:
            return kind(value)
        except OverflowError:
            pass
    raise ConfigError(f"expected {where} to be {_IN_WORDS.get(kind, kind.__name__)}, got {shown(value)}")


def _check_path(value: str, where: str) -> None:
    """Refuse what the file system does not take."""
    try:
        encoded = os.fsencode(value)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise ConfigError(f"expected {where} to be a text that a file's name can be, got {shown(value)}")


def _number(text: str) -> float | str:
    """Parse a number if possible: YAML reads 1e-3 as a string."""
    try:
        return float(text)
    except ValueError:
        return text


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
