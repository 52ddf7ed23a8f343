"""Is a model what its description makes? What was changed by hand, and a file would lose, is found before that."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.exporting.names import is_spec
from slimrnn.exporting.tensors import held_tensors, sizes

OF_ITS_OWN = ("number", "training")  # attributes that differ between equal modules
HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def check_same(model: nn.Module, made: nn.Module) -> None:
    """TypeError with the first difference: modules, their options, hooks, names and sizes of tensors."""
    ours, theirs = dict(model.named_modules(remove_duplicate=False)), dict(made.named_modules(remove_duplicate=False))
    for name, module in ours.items():
        at = f" at {name}" if name else ""
        other: Any = theirs.get(name)
        if type(module) is not type(other):
            raise TypeError(f"expected the modules that {type(model).__name__} makes, got {type(module).__name__}{at}")
        _check_options(module, other, at)
    if missing := theirs.keys() - ours.keys():
        raise TypeError(f"expected the modules that {type(model).__name__} makes, got none at {min(missing)}")
    held, wanted = sizes(held_tensors(model)), sizes(held_tensors(made))
    for name in sorted(held.keys() | wanted.keys()):
        if held.get(name) != wanted.get(name):
            raise TypeError(f"expected {wanted.get(name)} as {name}, which the layer makes, got {held.get(name)}")


def _check_options(module: nn.Module, made: nn.Module, at: str) -> None:
    kind = type(module).__name__
    for name in HOOKS:
        if len(getattr(module, name)) != len(getattr(made, name)):
            raise TypeError(f"expected a module without hooks, which a file cannot hold, got {kind}{at} with some")
    for name, value in module.__dict__.items():
        if callable(getattr(type(module), name, None)) and callable(value):
            raise TypeError(f"expected {kind}{at} as its class is, got one with its own {name}")
    for name, value in made.__dict__.items():
        compared = name == "_wanted_backend" or not (name.startswith("_") or name in OF_ITS_OWN)
        if compared and _is_plain(value) and not _equal(value, module.__dict__.get(name)):
            raise TypeError(f"expected {kind}{at} with {name}={value!r}, as its layer was made, got {name} changed")


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(item) for item in value.values())
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str | torch.dtype | Tensor) or is_spec(value)


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, Tensor):
        return isinstance(other, Tensor) and torch.equal(value, other)
    if isinstance(value, dict):
        return isinstance(other, dict) and list(value) == list(other) and _equal([*value.values()], [*other.values()])
    if isinstance(value, tuple | list):
        return type(value) is type(other) and len(value) == len(other) and all(map(_equal, value, other))
    return type(value) is type(other) and (value == other or value != value)
