"""What code written for torch.nn's recurrent layers reads of them: `mode`, `all_weights`, `weight_hh_l0` and the like.

A dense layer's `weight_ih_l0` and `weight_hh_l0` are its own parameters in torch's shape: what is written into them is
kept. A structured layer's are computed, with gradients, and so is `bias_hh_l0`: we have one bias for each gate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from slimrnn._hooks import read
from slimrnn.cells import ElmanCell, GRUCell
from slimrnn.layers.computed_weight import ComputedWeight
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.structures.base import StructuredMap
from slimrnn.structures.dense import DenseMap

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack

NAME = re.compile(r"(weight|bias)_(ih|hh)_l(\d+)(_reverse)?")
PREFIXES = ("weight_", "bias_ih", "bias_hh")


class TorchNames(nn.Module):
    """The names of torch.nn.RNN, GRU and LSTM on a stack."""

    proj_size = 0

    @property
    def mode(self) -> str:
        """ "LSTM", "GRU", "RNN_TANH" or "RNN_RELU"; layers that torch.nn does not have have none."""
        stack: Any = self
        if stack.torch_type is None:
            raise AttributeError(f"torch.nn has no {type(self).__name__}")
        cell, kind = stack.cell, str(stack.torch_type.__name__)
        return f"{kind}_{cell.nonlinearity.upper()}" if isinstance(cell, ElmanCell) else kind

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Of each layer and direction: its weights and biases by torch's names."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _all_weights(self) -> list[list[str]]:
        stack: Any = self
        kinds = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if stack.bias else [])]
        return [[kind + suffix for kind in kinds] for suffix in suffixes(stack)]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [weight for weights in self.all_weights for weight in weights]

    if not TYPE_CHECKING:  # to which a class that defines them may have any attribute

        def __getattr__(self, name: str) -> Any:
            if name.startswith(PREFIXES) and NAME.fullmatch(name):
                return weight_of(self, name)
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name.startswith(PREFIXES) and NAME.fullmatch(name):
                raise AttributeError(_how_to_set(self, name))
            super().__setattr__(name, value)


def suffixes(stack: RecurrentStack) -> list[str]:
    """As in weight_hh_l0_reverse, in the order of the stack's layers."""
    directions = ["", "_reverse"][: stack.num_directions]
    return [f"_l{depth}{direction}" for depth in range(stack.num_layers) for direction in directions]


def weight_of(stack: RecurrentStack, name: str) -> Tensor:
    """The weight or bias of that name in torch's shape, (G·H, I), (G·H, H) or (G·H)."""
    layer, (kind, end) = _layer_of(stack, name), name.split("_")[:2]
    if kind == "weight":
        found: StructuredMap = layer.input if end == "ih" else layer.recurrent
        if holds_matrices(found):
            return found.get_parameter("weight").flatten(0, 1)
        return _computed(stack, name, found.dense().flatten(0, 1))
    first, second = give_biases(layer.cell)
    if end == "ih":
        return first.flatten() if "bias" in layer.cell._parameters else _computed(stack, name, first.flatten())
    return _computed(stack, name, second.flatten())


def holds_matrices(map: StructuredMap) -> bool:
    """Whether its one parameter is the matrices, (G, m, n), and nothing is done to it."""
    return type(map) is DenseMap and not map.weight_norm and "weight" in map._parameters


def give_biases(cell: nn.Module) -> tuple[Tensor, Tensor]:
    """As torch has them, two for each gate: all of ours, and zeros but for what a GRU resets."""
    first = read(cell, "bias")
    second = torch.zeros_like(first)
    if isinstance(cell, GRUCell) and cell.reset == "after":
        second = torch.cat([second[:2], read(cell, "recurrent_bias").unsqueeze(0)])
    return first, second


def _layer_of(stack: RecurrentStack, name: str) -> RecurrentLayer:
    suffix = "_" + name.split("_", 2)[2]
    reason, known = None, stack.torch_type is not None and not stack.cell.complex
    if not known or len(stack.delays) > 1 or len(stack.cores[0].transitions) > 1:
        reason = "torch.nn has no such layer: see recurrent_matrices() and named_parameters()"
    elif suffix not in suffixes(stack):
        reason = f"expected the end of a name from {', '.join(suffixes(stack))}, got {suffix}"
    elif name.startswith("bias") and not stack.bias:
        reason = "it was made with bias=False"
    if reason:
        raise AttributeError(f"{type(stack).__name__!r} object has no attribute {name!r}: {reason}")
    return stack.layer(suffixes(stack).index(suffix))


def _computed(stack: RecurrentStack, name: str, numbers: Tensor) -> Tensor:
    if torch.compiler.is_compiling() or torch._C._is_tracing():
        return numbers
    return ComputedWeight.of(numbers, _how_to_set(stack, name))


def _how_to_set(stack: RecurrentStack, name: str) -> str:
    refused = f"{name} of a slimrnn {type(stack).__name__} is to be read, not set"
    if (suffix := "_" + name.split("_", 2)[2]) not in suffixes(stack):
        return refused
    layer = f"layers[{suffixes(stack).index(suffix)}]"
    if name.startswith("weight"):
        own = "input" if name.startswith("weight_ih") else "recurrent"
        return f"{refused}: use {layer}.{own}.nearest_(matrices), with a matrix for each gate, (gates, outputs, inputs)"
    inner = f", and {layer}.cell.recurrent_bias for what a GRU resets" if isinstance(stack.cell, GRUCell) else ""
    return f"{refused}: there is one bias for each gate, (gates, units), so write to {layer}.cell.bias{inner}"
