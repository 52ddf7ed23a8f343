"""A model as plain data: the class of every module, and the arguments that its constructor would make it from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.exporting.int8.layer import Int8Layer
from slimrnn.exporting.names import FREE, arguments_of, is_spec, name_of
from slimrnn.layers import GRU, LSTM, RNN, ReadOut, Recurrent, RecurrentStack
from slimrnn.layers.options import DEFAULTS, OPTIONS
from slimrnn.layers.recurrent import OF_TORCH, CellLayer, CellStack
from slimrnn.structures import Dense

PLACE = ("dtype", "device")
OF_CELLS: dict[type[RecurrentStack], tuple[str, ...]] = {  # arguments of a layer that its cell holds
    RNN: ("nonlinearity", "complex"),
    LSTM: ("peephole",),
    GRU: ("reset",),
}
TORCH_RECURRENT: dict[type[nn.Module], tuple[str, ...]] = {  # their signatures name nothing
    nn.RNN: (*OF_TORCH, "nonlinearity"),
    nn.GRU: OF_TORCH,
    nn.LSTM: (*OF_TORCH, "proj_size"),
}
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
Described = dict[str, Any]


class Describer:
    """Describes modules; `custom` are the classes and functions of the user that it met."""

    def __init__(self) -> None:
        self.custom: dict[Any, None] = {}
        self.places: dict[nn.Module, str] = {}

    def describe(self, module: nn.Module, at: str = "") -> Described:
        """By class and arguments, or by where it was met before; TypeError for a module that these cannot tell. `at` is
        its name in the model."""
        first = self.places.setdefault(module, at)
        return {"same_as": first} if first != at else self._described(module, at)

    def _described(self, module: nn.Module, at: str) -> Described:
        kind = type(module)
        if kind not in FREE.values() and not (isinstance(module, CellLayer) and kind.__init__ is CellLayer.__init__):
            wanted = "layers of slimrnn, or made by layer_of, and common modules of torch.nn"
            raise TypeError(f"expected {wanted}, got {kind.__name__}{f' at {at}' if at else ''}")
        if isinstance(module, CONTAINERS):
            children = {name: child for name, child in module._modules.items() if child is not None}
            inside = {name: self.describe(child, within(at, name)) for name, child in children.items()}
            return {"type": name_of(kind), "modules": inside}
        encoded = {name: self._encoded(value, name, at) for name, value in self._arguments(module).items()}
        return {"type": self._name(kind), **encoded}

    def _name(self, value: Any) -> str:
        name = name_of(value)
        if name not in FREE:
            self.custom[value] = None
        return name

    def _arguments(self, module: nn.Module) -> dict[str, Any]:
        if isinstance(module, RecurrentStack):
            found = _of_stack(module)
            in_int8 = tuple(k for k, core in enumerate(module.cores) if isinstance(core, Int8Layer))
            if in_int8:
                found["int8"] = in_int8
            if module.embedding is not None and not self._is_own(module.embedding, module):
                found["embedding"] = module.embedding
            return found
        if isinstance(module, ReadOut):
            sizes = {"input_size": module.in_features, "output_size": module.out_features, "at": module.at}
            form = {"batch_first": module.batch_first, "bidirectional": module.bidirectional}
            return {**sizes, "bias": module.bias is not None, **form, "dtype": module.weight.dtype}
        return _of_attributes(module)

    def _is_own(self, embedding: nn.Module, stack: RecurrentStack) -> bool:
        """Whether it is as a stack with `vocabulary` makes it, and was not put there."""
        if stack.vocabulary is None or embedding in self.places:
            return False
        own = nn.Embedding(stack.vocabulary, stack.input_size, device="meta", **_dtype_of(stack.layers))
        return type(embedding) is nn.Embedding and _of_attributes(embedding) == _of_attributes(own)

    def _encoded(self, value: Any, name: str, at: str) -> Any:
        """Tuples become lists, and what JSON lacks an object that tells what it is."""
        if isinstance(value, tuple) and value and all(_is_row_of_bools(row) for row in value):
            return {"rows": ["".join("01"[entry] for entry in row) for row in value]}
        if isinstance(value, tuple | list):
            items = [self._encoded(item, name, at) for item in value]
            return items if isinstance(value, tuple) else {"list": items}
        if isinstance(value, nn.Module):
            return self.describe(value, within(at, name))
        if is_spec(value):
            return {"type": self._name(type(value)), **self._of_spec(value, at)}
        if isinstance(value, type):
            return {"class": self._name(value)}
        if callable(value):
            return {"function": self._name(value)}
        return _plain(value, name)

    def _of_spec(self, spec: Any, at: str) -> Described:
        found = {}
        for name, parameter in arguments_of(type(spec)).items():
            if not hasattr(spec, name):
                raise TypeError(f"expected {type(spec).__name__} to keep its argument {name} as an attribute, got none")
            value = getattr(spec, name)
            if not _equal(value, parameter.default):
                found[name] = self._encoded(value, name, at)
        return found


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, float) and value - value != 0:
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, Tensor):
        return {"tensor": value.tolist(), "dtype": str(value.dtype).removeprefix("torch.")}
    raise TypeError(f"expected numbers, texts, tensors and structures as arguments, got {value!r} as {name}")


def _of_attributes(module: nn.Module) -> dict[str, Any]:
    """Arguments that a module keeps under their names."""
    kind, found = type(module), {}
    listed = TORCH_RECURRENT.get(kind)
    defaults = {name: p.default for name, p in arguments_of(kind).items()} if listed is None else dict.fromkeys(listed)
    for name, default in defaults.items():
        value = getattr(module, "wanted_backend" if name == "backend" else name, None)
        value = value is not None if name == "bias" and not isinstance(value, bool) else value
        if name not in PLACE and (listed or not _equal(value, default)):
            found[name] = value
    return found | (_dtype_of(module) if listed or "dtype" in defaults else {})


def _of_stack(stack: RecurrentStack) -> dict[str, Any]:
    usual = DEFAULTS | {"input_structure": Dense(), "backend": "auto"}
    for name in getattr(stack, "defaults", ()):  # of the class
        usual.pop(name, None)
    names = [name for name in (*OF_TORCH, *OPTIONS) if name not in (*PLACE, "backend")]
    found = {name: getattr(stack, name) for name in names} | {"backend": stack.wanted_backend}
    found = {name: value for name, value in found.items() if name not in usual or value != usual[name]}
    for kind, own in OF_CELLS.items():
        if isinstance(stack, kind):
            held = {name: getattr(stack.cell, name) for name in own}
            found |= {name: value is not None if name == "peephole" else value for name, value in held.items()}
    if isinstance(stack, CellStack):
        found |= stack.cell_options
    if isinstance(stack, Recurrent):
        found = {"cell_type": type(stack.cell)} | found
    return found | _dtype_of(stack.layers)


def _dtype_of(module: nn.Module) -> dict[str, Any]:
    some = next(module.parameters(), next(module.buffers(), None))
    return {} if some is None else {"dtype": some.dtype}


def _equal(value: Any, other: Any) -> bool:
    return type(value) is type(other) and not isinstance(value, Tensor) and bool(value == other)


def _is_row_of_bools(row: object) -> bool:
    return isinstance(row, tuple) and bool(row) and all(isinstance(entry, bool) for entry in row)


def within(at: str, name: str) -> str:
    """The name in the model of what has a name in a module."""
    return f"{at}.{name}".lstrip(".")
