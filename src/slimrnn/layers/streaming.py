"""The lean path of `step`: native, without autograd, with packed weights that are renewed when a parameter changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from slimrnn._fields import field_dtype
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import native
from slimrnn.ops.stepping import Stepper
from slimrnn.structures.dense import DenseMap

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack, States


class Stream:
    """A stack's layers, packed for single steps, and what they were made from."""

    def __init__(self, stack: RecurrentStack) -> None:
        layers = [stack.layer(k) for k in range(len(stack.layers))]
        self.steppers = [_stepper(layer) for layer in layers]
        self.input_size, self.residual = stack.input_size, stack.residual
        self.dtype = next(stack.parameters()).dtype
        self.state_dtype = field_dtype(self.dtype, stack.cell.complex)
        self.depth, self.hidden, self.states = len(layers), stack.hidden_size, stack.cell.states
        modules = list(stack.modules())
        if any(p.is_inference() for p in stack.parameters()):  # their changes leave no trace
            self.steppers = [None] * len(layers)
            modules = []
        self.parameters = [
            (m._parameters, name, p, None if p is None else p.data_ptr(), None if p is None else p._version)
            for m in modules
            for name, p in m._parameters.items()
        ]
        self.children = [(m._modules, name, child) for m in modules for name, child in m._modules.items()]

    def is_current(self) -> bool:
        """Whether every parameter is still the one that was packed, and unchanged."""
        for table, name, p, pointer, version in self.parameters:
            now = table.get(name)
            if now is not p or (p is not None and (p._version != version or p.data_ptr() != pointer)):
                return False
        return all(table.get(name) is child for table, name, child in self.children)

    def step(self, x: Tensor, state: States) -> tuple[Tensor, States] | None:
        """As the stack's step; None for input that it does not fit, which the ordinary step will explain."""
        parts = state if isinstance(state, tuple) else (state,)
        if (
            not _plain(x)
            or x.dim() not in (1, 2)
            or x.shape[-1] != self.input_size
            or x.dtype != self.dtype
            or len(parts) != self.states
        ):
            return None
        batched = x.dim() == 2
        shape = (self.depth, x.shape[0], self.hidden) if batched else (self.depth, self.hidden)
        for part in parts:
            if part.shape != shape or part.dtype != self.state_dtype or not _plain(part):
                return None
        after = tuple([torch.empty_like(part) for part in parts])
        batch = x.shape[0] if batched else 1
        for depth, stepper in enumerate(self.steppers):
            if stepper is None:
                return None
            y = stepper(x, batch, parts, after, depth)
            x = y + x if self.residual and depth else y
        return (x if batched else x[0]), after if len(after) > 1 else after[0]


def find_stream(stack: RecurrentStack, x: Tensor) -> Stream | None:
    """The stack's stream, renewed where needed; None where the ordinary step must run."""
    if torch.is_grad_enabled() or stack.backend != "native" or (stack.training and stack.dropout):
        return None
    if torch.compiler.is_compiling() or not isinstance(x, Tensor) or not native.can_serve(x):
        return None
    stream: Stream | None = stack.__dict__.get("_stream")
    if stream is None or not stream.is_current():
        stream = stack.__dict__["_stream"] = Stream(stack)
    return stream


def _plain(t: Tensor) -> bool:
    """Whether the memory holds the numbers as they are."""
    return t.is_contiguous() and not t.is_conj() and not t.is_neg()


def _stepper(layer: RecurrentLayer) -> Stepper | None:
    name, terms = layer.cell.native_name, layer.recurrent.native_terms()
    if name is None or terms is None or layer.backend != "native" or not isinstance(layer.input, DenseMap):
        return None
    (u,) = layer.input.prepare()
    return Stepper(name, layer.cell.native_parameters(), terms, u, layer.cell.input_bias(), layer.cell.complex)
