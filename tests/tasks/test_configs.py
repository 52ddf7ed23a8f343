"""Configurations as dicts, there and back, and what is refused on the way."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slimrnn.errors import ConfigError
from slimrnn.tasks import AddingTask, CopyTask, WordCopyTask, config_from_dict, config_to_dict, registry
from slimrnn.training import Config, ModelConfig, OptimConfig, Task

NAMES = ", ".join(registry.TASKS)
COUNTS = st.integers(1, 10**6)
TASKS = st.one_of(
    st.builds(CopyTask, COUNTS, COUNTS, COUNTS, st.booleans(), st.booleans()),
    st.builds(WordCopyTask, COUNTS, COUNTS, COUNTS),
    st.builds(AddingTask, st.integers(2, 10**6)),
)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of the types that settings have."""
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: st.integers(-(2**63), 2**63),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        str: st.text(),
        Path: st.sampled_from([Path("runs/one"), Path("a b")]),
        Task: TASKS,
        ModelConfig: st.deferred(lambda: settings_of(ModelConfig)),
        OptimConfig: st.deferred(lambda: settings_of(OptimConfig)),
        NoneType: st.none(),
    }
    if kind in simple:
        return simple[kind]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        return st.lists(values_of(get_args(kind)[0])).map(tuple)
    return st.one_of([values_of(part) for part in get_args(kind)])


def settings_of(cls: type[Any]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls)
    return st.builds(cls, **{field.name: values_of(hints[field.name]) for field in fields(cls)})


@given(settings_of(Config))
def test_any_configuration_survives_json_and_yaml(config: Config) -> None:
    values = config_to_dict(config)
    assert config_from_dict(values) == config
    assert config_from_dict(json.loads(json.dumps(values))) == config
    assert config_from_dict(yaml.safe_load(yaml.safe_dump(values))) == config


def test_types_are_restored() -> None:
    config = config_from_dict(
        {"task": {"name": "copy"}, "model": {"factors": [2, 3]}, "optim": {"lr": 1, "eps": "1e-4"}, "out": "runs/a"}
    )
    expected = Config(CopyTask(), ModelConfig(factors=(2, 3)), OptimConfig(lr=1.0, eps=1e-4), out=Path("runs/a"))
    assert config == expected
    assert type(config.optim.lr) is float


def test_what_is_left_out_has_its_default() -> None:
    assert config_from_dict({"task": {"name": "adding", "length": 50}}) == Config(AddingTask(50))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": {"name": "coppy"}}, f"expected a task of {NAMES}, got 'coppy'; did you mean 'copy'?"),
        ({"task": {"name": ["copy"]}}, f"expected a task of {NAMES}, got ['copy']"),
        (
            {"task": "copy"},
            f"expected task to be a dict with the name of a task ({NAMES}), got 'copy'",
        ),
        (
            {"task": {"name": "adding", "lenght": 5}},
            "expected an option of task (length), got 'lenght'; did you mean 'length'?",
        ),
        ({"task": {"name": "copy", "length": -3}}, "expected length to be at least 1, got -3"),
        ({"task": {"name": "copy", "length": 2.5}}, "expected task.length to be an int, got 2.5"),
        ({"updates": "many"}, "expected updates to be an int, got 'many'"),
        ({"updates": True}, "expected updates to be an int, got True"),
        ({"updates": None}, "expected updates to be an int, got None"),
        ({"tensorboard": 1}, "expected tensorboard to be true or false, got 1"),
        ({"out": 3}, "expected out to be a path, got 3"),
        ({"model": {"structure": 7}}, "expected model.structure to be a text, got 7"),
        ({"model": {"factors": 2}}, "expected model.factors to be a list, got 2"),
        ({"model": {"factors": [2, "x"]}}, "expected model.factors to be an int, got 'x'"),
        ({"model": 3}, "expected model to be a dict, got 3"),
        ({"optim": {"lr": "fast"}}, "expected optim.lr to be a number, got 'fast'"),
        ({"optim": {"lr": True}}, "expected optim.lr to be a number, got True"),
        (
            {"model": {"reset": "befor"}},
            "expected model.reset to be one of before, after, got 'befor'; did you mean 'before'?",
        ),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        config_from_dict({"task": {"name": "copy"}} | change)


def test_unknown_options_are_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"expected an option of model \(cell, hidden, .*\), got 'hiden'; .*'hidden'"):
        config_from_dict({"task": {"name": "copy"}, "model": {"hiden": 3}})
    with pytest.raises(
        ValueError, match=r"expected an option \(task, model, .*\), got 'update'; did you mean 'updates'"
    ):
        config_from_dict({"task": {"name": "copy"}, "update": 3})


def test_a_task_must_be_given() -> None:
    with pytest.raises(ConfigError, match="expected task to be given, got none"):
        config_from_dict({})
    with pytest.raises(ConfigError, match="expected a configuration to be a dict, got 3"):
        config_from_dict(3)  # type: ignore[arg-type]
