"""What a step may depend on but the numbers in tensors: attributes of the cell, of its submodules and of their classes.

Not seen: globals, what a function encloses, and what is inside of objects that are neither plain nor modules and stand
in a class."""

from __future__ import annotations

import types
from collections.abc import Iterator
from operator import is_
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.cells.base import Cell

PLAIN = (int, float, complex, str, bytes, bool, type(None), type, types.BuiltinFunctionType)
OF_TORCH = (torch.dtype, torch.device)
TABLES = ("_parameters", "_buffers", "_modules")
BOOKKEEPING = frozenset({*nn.Module().__dict__, "_changes"} - {*TABLES, "training"})
METHODS = (staticmethod, classmethod)


def key_of(module: nn.Module) -> Any:
    """Equal keys, equal steps. TypeError where something could change unseen."""
    own = tuple((name, _frozen(value)) for name, value in module.__dict__.items() if name not in BOOKKEEPING)
    return type(module), tuple(map(_key_of_class, _classes(type(module)))), own


def is_fixed(cell: Cell) -> bool:
    """Whether all attributes must be set anew to change, but for those of its tensors."""
    if cell._modules:
        return False
    own = (value for name, value in cell.__dict__.items() if name not in BOOKKEEPING and name not in TABLES)
    of_classes = (value for cls in _classes(type(cell)) for _, value in _attributes(cls))
    return all(map(_is_fixed, own)) and not any(isinstance(value, list | dict | set) for value in of_classes)


class ClassState:
    """The attributes of a class and of those above it, as they are now; compared in every call of a layer."""

    def __init__(self, cls: type) -> None:
        self.tables: list[tuple[Any, list[str], list[Any], int]] = []
        self.codes: list[tuple[types.FunctionType, types.CodeType]] = []
        for one in _classes(cls):
            names, values = [name for name, _ in _attributes(one)], [value for _, value in _attributes(one)]
            self.tables.append((one.__dict__, names, values, len(one.__dict__)))
            self.codes += [(value, value.__code__) for value in values if isinstance(value, types.FunctionType)]

    def is_same(self) -> bool:
        try:
            for table, names, values, count in self.tables:
                if len(table) != count or not all(map(is_, map(table.__getitem__, names), values)):
                    return False
        except KeyError:  # one is gone
            return False
        return all(function.__code__ is code for function, code in self.codes)


def _classes(cls: type) -> list[type]:
    """The class and those above it that are neither torch's nor the base of cells."""
    return [c for c in cls.__mro__ if c not in Cell.__mro__ and not c.__module__.startswith("torch.")]


def _attributes(cls: type) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in cls.__dict__.items() if not name.startswith("__"))


def _key_of_class(cls: type) -> Any:
    return cls, tuple((name, _of_class(value)) for name, value in _attributes(cls))


def _of_class(value: Any) -> Any:
    if isinstance(value, METHODS):
        return type(value), _of_class(value.__func__)
    if isinstance(value, property):
        return property, tuple(map(_of_class, (value.fget, value.fset)))
    try:
        return _frozen(value)
    except TypeError:
        return _Itself(value)


class _Itself:
    """An object that equals none but itself."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _is_fixed(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    return isinstance(value, (*PLAIN, *OF_TORCH, Tensor, types.FunctionType))


def _frozen(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Tensor, tuple(value.shape), value.is_complex()
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, types.FunctionType):
        return value, value.__code__
    if isinstance(value, OF_TORCH):
        return value
    if isinstance(value, nn.Module):
        return key_of(value)
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_frozen, value))
    if isinstance(value, dict):
        return type(value), tuple((_frozen(k), _frozen(v)) for k, v in value.items())
    raise TypeError(f"cannot tell whether a {type(value).__name__} has changed")
