"""The lean path of `step`: native, without autograd, with packed weights that are renewed when a parameter changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from slimrnn._fields import field_dtype
from slimrnn.layers.native_scan import native_program
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import native
from slimrnn.ops.operators import traced, transformed
from slimrnn.ops.stepping import Stepper
from slimrnn.structures.dense import DenseMap

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack, States


_optimizer_steps = 0  # of any optimizer: the fused ones change parameters without raising their version


def _count(*_: object) -> None:
    global _optimizer_steps
    _optimizer_steps += 1


register_optimizer_step_post_hook(_count)


class Stream:
    """A stack's layers, packed for single steps, and what they were made from. Written for speed: see `step`."""

    def __init__(self, stack: RecurrentStack) -> None:
        layers = stack.cores
        self.steppers = [_stepper(layer) for layer in layers]
        self.input_size, self.residual = stack.input_size, stack.residual
        self.dtype = next(stack.parameters()).dtype
        self.state_dtype = field_dtype(self.dtype, stack.cell.complex)
        self.depth, self.hidden, self.states = len(layers), stack.hidden_size, stack.cell.states
        self.shapes: dict[torch.Size, Shapes | None] = {}
        modules = list(stack.modules())
        self.serves = None not in self.steppers and len(layers) == len(stack.layers)  # no groups side by side
        if any(p.is_inference() for p in (*stack.parameters(), *stack.buffers())):  # their changes leave no trace
            self.serves, modules = False, []
        held = [table for m in modules for table in (m._parameters, m._buffers)]  # a fixed leak is a buffer
        tables = [(table, name, p) for table in held for name, p in table.items()]
        self.parameters = [(t, name, p, p.data_ptr, p.data_ptr(), p._version) for t, name, p in tables if p is not None]
        self.optimizer_steps = _optimizer_steps
        self.absent = [(t, name) for t, name, p in tables if p is None]
        self.children = [(m._modules, name, child) for m in modules for name, child in m._modules.items()]

    def is_current(self) -> bool:
        """Whether every parameter is still the one that was packed, and unchanged."""
        if self.optimizer_steps != _optimizer_steps:
            return False
        for table, name, p, find_pointer, pointer, version in self.parameters:
            if table.get(name) is not p or p._version != version or find_pointer() != pointer:
                return False
        for children, name, child in self.children:
            if children.get(name) is not child:
                return False
        return all(table.get(name) is None for table, name in self.absent) if self.absent else True

    def step(self, x: Tensor, state: States) -> tuple[Tensor, States] | None:
        """As the stack's step; None for input that it does not fit, which the ordinary step will explain.

        The checks are those of the ordinary step, each in its cheapest form; all that follows from the shape of x is
        looked up by it."""
        parts: Any = (state,) if self.states == 1 else state
        if type(x) is not Tensor or x.dtype is not self.dtype or not x.is_cpu or not _plain(x):
            return None
        shape = x.shape
        known = self.shapes.get(shape) or self._learn(shape)
        if known is None or type(parts) is not tuple or len(parts) != self.states:
            return None
        for part in parts:
            if type(part) is not Tensor or part.shape != known.state or part.dtype is not self.state_dtype:
                return None
            if not part.is_cpu or not _plain(part):
                return None
        after = tuple([torch.empty_like(part) for part in parts])
        for depth, stepper in enumerate(self.steppers):
            assert stepper is not None
            y = torch.empty_like(known.output)
            stepper(x, known.batch, parts, after, depth, y)
            x = y + x if self.residual and depth else y
        return x, after if self.states > 1 else after[0]

    def _learn(self, shape: torch.Size) -> Shapes | None:
        if not self.serves or len(shape) not in (1, 2) or shape[-1] != self.input_size or not shape.numel():
            return None
        if len(self.shapes) > 100:
            self.shapes.clear()
        width = self.hidden * (2 if self.state_dtype.is_complex else 1)
        output = torch.empty((*shape[:-1], width), dtype=self.dtype, device="cpu")
        state = torch.Size((self.depth, *shape[:-1], self.hidden))
        known = self.shapes[shape] = Shapes(shape[0] if len(shape) == 2 else 1, state, output)
        return known


class Shapes(NamedTuple):
    """What follows from the shape of an input."""

    batch: int
    state: torch.Size
    output: Tensor  # of which only the shape and type are used


def find_stream(stack: RecurrentStack) -> Stream | None:
    """The stack's stream, renewed where needed; None where the ordinary step must run."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or stack.backend != "native" or transformed():
        return None
    if (stack.dropout and stack.training) or traced():
        return None
    stream: Stream | None = stack.__dict__.get("_stream")
    if stream is None or not stream.is_current():
        stream = stack.__dict__["_stream"] = Stream(stack)
    return stream


def _plain(t: Tensor) -> bool:
    """Whether the memory holds the numbers as they are."""
    return t.is_contiguous() and not t.is_conj() and not t.is_neg()


def _stepper(layer: RecurrentLayer) -> Stepper | None:
    program = native_program(layer)
    if program is None or layer.backend != "native" or not isinstance(layer.input, DenseMap):
        return None
    if program.phases > 1 or layer.line > 1:
        return None
    if not all(native.can_serve(p) for p in layer.parameters()):
        return None
    (u,) = layer.input.prepare()
    return Stepper(program, u, layer.cell.input_bias(), layer.cell.complex)
