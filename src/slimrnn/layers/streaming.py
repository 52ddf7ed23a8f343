"""The lean path of `step`: native, without autograd, with packed weights that are renewed when anything changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from slimrnn._fields import field_dtype
from slimrnn._hooks import is_computed
from slimrnn.layers.fingerprint import Fingerprint
from slimrnn.layers.input_product import input_matrix
from slimrnn.layers.native_scan import native_program
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import native
from slimrnn.ops.operators import traced, transformed
from slimrnn.ops.stepping import Stepper

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack, States


class Stream:
    """A stack's layers, packed for single steps, and what they were made from. Written for speed: see `step`."""

    def __init__(self, stack: RecurrentStack) -> None:
        self.made_from = Fingerprint(stack)  # before packing: a write in between is then seen
        self.fixed = 0  # promises that nothing changes, see RecurrentStack.fixed_weights
        layers = stack.cores
        self.steppers = [_stepper(layer) for layer in layers]
        self.serves = None not in self.steppers and len(layers) == len(stack.layers)  # no groups side by side
        self.input_size, self.residual = stack.input_size, stack.residual
        self.dtype = next(stack.parameters()).dtype
        self.state_dtype = field_dtype(self.dtype, stack.cell.complex)
        self.depth, self.hidden, self.states = len(layers), stack.hidden_size, stack.cell.states
        self.shapes: dict[torch.Size, Shapes | None] = {}
        if any(is_computed(m) for layer in layers for m in layer.modules() if m is not layer):
            self.serves = False  # what torch.nn.utils computes may differ from step to step

    def is_current(self) -> bool:
        """Whether the stack still is what was packed, or that has been promised."""
        if self.fixed:
            return True
        return self.made_from.has_same_parts() and (not self.serves or self.made_from.has_same_contents())

    def step(self, x: Tensor, state: States) -> tuple[Tensor, States] | None:
        """As the stack's step; None for input that it does not fit, which the ordinary step will explain.

        The checks are those of the ordinary step, each in its cheapest form; all that follows from the shape of x is
        looked up by it."""
        parts: Any = (state,) if self.states == 1 else state
        if type(x) is not Tensor or x.dtype is not self.dtype or not x.is_cpu or _is_lazy(x):
            return None
        shape = x.shape
        known = self.shapes.get(shape) or self._learn(shape)
        if known is None or type(parts) is not tuple or len(parts) != self.states:
            return None
        for part in parts:
            if type(part) is not Tensor or part.shape != known.state or part.dtype is not self.state_dtype:
                return None
            if not part.is_cpu or _is_lazy(part):
                return None
        x, parts = x.contiguous(), [part.contiguous() for part in parts]  # such as x[:, t] of a batch-first batch
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
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or transformed() or traced():
        return None
    return None if stack.dropout and stack.training else current_stream(stack)


def current_stream(stack: RecurrentStack) -> Stream:
    """The stack's stream, renewed where needed."""
    stream: Stream | None = stack.__dict__.get("_stream")
    if stream is None or not stream.is_current():
        stack.__dict__["_stream"] = None  # an entry while it is made, as there will be then
        stream = stack.__dict__["_stream"] = Stream(stack)
    return stream


def _is_lazy(t: Tensor) -> bool:
    """Whether the memory holds the numbers before a conjugation or a change of sign."""
    return t.is_conj() or t.is_neg()


def _stepper(layer: RecurrentLayer) -> Stepper | None:
    program = native_program(layer)
    u = input_matrix(layer.input, layer.recurrent.input_scale())
    if program is None or layer.backend != "native" or u is None:
        return None
    if program.plan.phases > 1 or layer.line > 1:
        return None
    if layer.training and layer.zoneout is not None:  # other noise in every step
        return None
    if not all(native.can_serve(p) for p in layer.parameters()):
        return None
    own = None if program.own is None else program.own.to(u.dtype.to_real())
    return Stepper(program._replace(own=own), u, layer.cell.input_bias())
