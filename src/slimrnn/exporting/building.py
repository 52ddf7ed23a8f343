"""Models from plain data, as `descriptions` gives it: what a file says is checked, and no memory is taken before."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any

import torch
from torch import nn

from slimrnn._texts import shown
from slimrnn.cells import Cell
from slimrnn.errors import SavedModelError
from slimrnn.exporting.descriptions import CONTAINERS, Described, within
from slimrnn.exporting.int8.conversion import to_int8_
from slimrnn.exporting.int8.embedding import Int8Embedding
from slimrnn.exporting.int8.linear import Int8Linear
from slimrnn.exporting.names import Names, makes_spec
from slimrnn.layers import ReadOut, RecurrentStack
from slimrnn.ops.library import native_library

COUNTS = ("num_layers", "transition_depth", "input_depth", "output_depth")  # of modules to make
UNITS = ("hidden_size", "auxiliary_size", "size")  # of which vectors are made on the way
FEW_UNITS = 2**20  # may be more than a file has numbers: a Kronecker product of small factors has many units
DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (torch.float64, torch.float32, torch.float16)} | {
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "bool": torch.bool,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
}


class Builder:
    """Makes modules on a device; `tensors` and `numbers` are how many the file has, which bound all counts."""

    def __init__(self, names: Names, device: str, tensors: int, numbers: int) -> None:
        self.names, self.device = names, device
        self.modules_left, self.most_units = tensors, max(numbers, FEW_UNITS)
        self.places: dict[str, nn.Module] = {}

    def build(self, described: object) -> nn.Module:
        """SavedModelError for whatever is wrong with the description. The state of torch's generator stays as it is."""
        try:
            with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a constructor has to say, it said when the model was made
                made = self._made(described, "")
        except SavedModelError:
            raise
        except Exception as error:  # constructors meet arguments of any kind here
            reason = shown(str(error) or type(error).__name__, 300)
            raise SavedModelError(f"expected the arguments of layers, got some that make none: {reason}") from None
        if not isinstance(made, nn.Module):
            raise SavedModelError(f"expected a layer or a module, got {shown(described)}")
        return made

    def _made(self, described: object, at: str) -> Any:
        """A module, whose name in the model is `at`, or a spec."""
        if isinstance(described, dict) and described.keys() == {"same_as"}:
            place = described["same_as"]
            if not isinstance(place, str) or place not in self.places:
                raise SavedModelError(f"expected the name of a module that came before, got {shown(place)}")
            return self.places[place]
        if not isinstance(described, dict) or "type" not in described:
            raise SavedModelError(f"expected a type and its arguments, got {shown(described)}")
        made = self.names.find(described["type"])
        if isinstance(made, type) and issubclass(made, CONTAINERS):
            return self._container(made, described, at)
        arguments = {n: self._decoded(value, within(at, n)) for n, value in described.items() if n != "type"}
        if makes_spec(made):
            return made(**arguments)
        if not isinstance(made, type) or not issubclass(made, nn.Module) or issubclass(made, Cell):
            raise SavedModelError(f"expected the name of a layer or a structure, got {shown(described['type'])}")
        self._check_counts(arguments)
        self.places[at] = found = self._module(made, arguments)
        return found

    def _module(self, made: type[nn.Module], arguments: dict[str, Any]) -> nn.Module:
        dtype = arguments.pop("dtype", None)
        place = {} if dtype is None else {"dtype": _dtype(dtype), "device": self.device}
        if made is ReadOut:
            return _read_out(arguments, place)
        if issubclass(made, Int8Linear | Int8Embedding):
            return made(**arguments, device=self.device)
        embedding, in_int8 = arguments.pop("embedding", None), arguments.pop("int8", ())
        if arguments.get("backend") == "native" and native_library() is None:
            arguments["backend"] = "auto"  # saved where there was one
        with torch.device(self.device) if not place else contextlib.nullcontext():  # no memory before sizes are known
            found = made(**arguments, **place)
        if embedding is not None and isinstance(found, RecurrentStack):
            found.embedding = embedding
        if in_int8:
            _round(found, in_int8)
        return found

    def _container(self, made: type[nn.Module], described: Described, at: str) -> nn.Module:
        inside = described.get("modules")
        if not isinstance(inside, dict) or described.keys() != {"type", "modules"}:
            raise SavedModelError(f"expected modules in a {made.__name__}, got {shown(described)}")
        self.places[at] = container = made()
        for name, child in inside.items():
            container.add_module(name, self._made(child, within(at, name)))
        return container

    def _check_counts(self, arguments: dict[str, Any]) -> None:
        counts = [arguments[name] for name in COUNTS if isinstance(arguments.get(name), int)]
        delays = arguments.get("delays")
        wanted = math.prod(max(count, 1) for count in counts) * (len(delays) if isinstance(delays, tuple) else 1)
        self.modules_left -= wanted - 1
        if self.modules_left < 0:
            raise SavedModelError(f"expected no more layers than there are weights for, got {wanted:.3g}")
        for name in UNITS:
            units = arguments.get(name)
            if isinstance(units, int) and units > self.most_units:
                raise SavedModelError(
                    f"expected {name} of at most {self.most_units:,} for its weights, got {units:.3g}"
                )

    def _decoded(self, value: Any, at: str) -> Any:
        if isinstance(value, list):
            return tuple(self._decoded(item, at) for item in value)
        if not isinstance(value, dict):
            return value
        if "type" in value or "same_as" in value:
            return self._made(value, at)
        match value:
            case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
                return float(text)
            case {"list": list(items), **rest} if not rest:
                return [self._decoded(item, at) for item in items]
            case {"rows": list(rows), **rest} if not rest and all(isinstance(row, str) for row in rows):
                return tuple(tuple(entry == "1" for entry in row) for row in rows)
            case {"tensor": numbers, "dtype": dtype, **rest} if not rest:
                return torch.tensor(numbers, dtype=_dtype(dtype))
            case {"class": name, **rest} if not rest:
                return self.names.find(name)
            case {"function": name, **rest} if not rest:
                return self.names.find(name)
        raise SavedModelError(f"expected a number, a text, a structure or a module, got {shown(value)}")


def _dtype(name: object) -> torch.dtype:
    if not isinstance(name, str) or name not in DTYPES:
        raise SavedModelError(f"expected a dtype such as 'float32', got {shown(name)}")
    return DTYPES[name]


def _round(stack: nn.Module, numbers: Any) -> None:
    """Some of a stack's layers in int8, as a file says."""
    cores = stack.cores if isinstance(stack, RecurrentStack) else []
    if not isinstance(numbers, tuple) or not all(type(k) is int and 0 <= k < len(cores) for k in numbers):
        raise SavedModelError(f"expected int8 to be numbers of the {len(cores)} layers, got {shown(numbers)}")
    for k in sorted(set(numbers)):
        to_int8_(cores[k], f"layer {k}")


def _read_out(arguments: dict[str, Any], place: dict[str, Any]) -> ReadOut:
    """A read-out of a layer that is not there."""
    layer: Any = nn.Module()
    layer.register_parameter("some", nn.Parameter(torch.empty(0, **place)))
    layer.output_size = arguments.pop("input_size")
    layer.batch_first, layer.bidirectional = arguments.pop("batch_first"), arguments.pop("bidirectional")
    return ReadOut(layer, **arguments)
