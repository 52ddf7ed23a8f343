"""The classes that a saved model may name: ours and torch's by their names alone, the user's only where they are given.

Nothing is imported because a file says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from slimrnn import cells, layers, structures
from slimrnn._texts import listed, shown
from slimrnn.cells.biases import DrawnBias
from slimrnn.errors import SavedModelError
from slimrnn.exporting.int8.embedding import Int8Embedding
from slimrnn.exporting.int8.linear import Int8Linear, Int8ReadOut
from slimrnn.layers.affine import Affine
from slimrnn.structures import Structure

# fmt: off
TORCH = (
    "Linear", "Embedding", "Conv1d", "Flatten", "Unflatten", "Identity",
    "LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm1d", "Dropout",
    "ReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "ELU", "SELU", "CELU", "LeakyReLU", "PReLU", "Mish", "Softplus",
    "Softsign", "Softmax", "LogSoftmax", "LogSigmoid", "Hardtanh", "Hardsigmoid", "Hardswish", "ReLU6", "GLU",
    "RNN", "GRU", "LSTM", "Sequential", "ModuleList", "ModuleDict",
)
# fmt: on


def _free() -> dict[str, Any]:
    found: dict[str, Any] = {"Affine": Affine} | {f"torch.nn.{name}": getattr(nn, name) for name in TORCH}
    found |= {kind.__name__: kind for kind in (Int8Linear, Int8ReadOut, Int8Embedding)}
    for room in (structures, cells, layers):
        found |= {name: value for name, value in vars(room).items() if inspect.isclass(value)}
    for inner in ("RecurrentLayer", "RecurrentStack", "StructuredMap", "Structure", "Cell"):  # nobody saves these
        del found[inner]
    return found


FREE = _free()
_NAMES = {value: name for name, value in FREE.items()}


def name_of(value: Any) -> str:
    """What stands for a class or a function in a file: its name if it is ours or torch's, else "module:Name"."""
    if value in _NAMES:
        return _NAMES[value]
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not module or not name or "<" in name:
        raise TypeError(f"expected a class or a function that has a name in its module, to save it, got {value!r}")
    return f"{module}:{name}"


class Names:
    """What the names in a file stand for; `custom` are classes and functions of the user."""

    def __init__(self, custom: Iterable[Any] = ()) -> None:
        self.custom: dict[str, Any] = {}
        for value in custom:
            name = getattr(value, "__qualname__", None)
            if name is None:
                raise TypeError(f"expected classes and functions in custom_objects, got {value!r}")
            if self.custom.setdefault(name, value) is not value:
                raise ValueError(f"expected custom_objects of different names, got two of the name {name!r}")

    def find(self, name: object) -> Any:
        if isinstance(name, str) and name in FREE:
            return FREE[name]
        module, colon, own = name.partition(":") if isinstance(name, str) else ("", "", "")
        if not colon:
            raise SavedModelError(f"expected the name of a layer, a cell or a structure, got {shown(name)}")
        if own not in self.custom:
            given = listed(sorted(self.custom)) or "none"
            wanted = f"{own[:60]}, which {module[:60]} defined when the model was saved"
            raise SavedModelError(f"expected {wanted}, among custom_objects=[...], got {given}")
        return self.custom[own]


def is_spec(value: object) -> bool:
    """Whether it is what a user writes to choose a structure, a leak or initial biases."""
    return isinstance(value, Structure | cells.Leaky | DrawnBias)


def makes_spec(made: object) -> bool:
    return isinstance(made, type) and issubclass(made, Structure | cells.Leaky | DrawnBias)


def arguments_of(made: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The named arguments of a constructor, but for those that begin with an underscore."""
    named = inspect.signature(made).parameters.items()
    return {n: p for n, p in named if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and not n.startswith("_")}
