"""The lean path of `step`: native, without autograd, with packed weights that are renewed when anything changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from slimrnn._fields import field_dtype
from slimrnn._hooks import is_computed
from slimrnn.layers.fingerprint import Fingerprint
from slimrnn.layers.input_product import written_out
from slimrnn.layers.native_scan import native_program
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import native
from slimrnn.ops.calls import Inputs
from slimrnn.ops.operators import transformed
from slimrnn.ops.stepping import Changed, Stepper, step_inputs

if TYPE_CHECKING:
    from slimrnn.layers.stack import RecurrentStack, States

empty_like, is_grad_enabled, is_compiling = torch.empty_like, torch.is_grad_enabled, torch.compiler.is_compiling
data_ptr, is_tracing = Tensor.data_ptr, torch._C._is_tracing


class Stream:
    """A stack's layers, packed for single steps, and what they were made from. Written for speed: see `step`."""

    def __init__(self, stack: RecurrentStack) -> None:
        self.made_from = Fingerprint(stack)  # before packing: a write in between is then seen
        self.fixed = 0  # promises that nothing changes, see RecurrentStack.fixed_weights
        layers = stack.cores
        found = [_stepper(layer) for layer in layers]
        self.steppers = [stepper for stepper in found if stepper is not None]
        self.serves = _takes_lean_steps(stack) and len(found) == len(self.steppers) == len(stack.layers)
        self.input_size, self.residual = stack.input_size, stack.residual
        self.dtype = next(stack.parameters()).dtype
        self.complex, self.state_dtype = stack.cell.complex, field_dtype(self.dtype, stack.cell.complex)
        self.depth, self.hidden, self.states = len(layers), stack.hidden_size, stack.cell.states
        self.width = self.hidden * (2 if self.complex else 1)  # of an output
        self.shapes: dict[torch.Size, Shapes | None] = {}

    def is_current(self) -> bool:
        """Whether the stack still is what was packed, or that has been promised."""
        if self.fixed:
            return True
        return self.made_from.has_same_parts() and (not self.serves or self.made_from.memory.is_unchanged())

    def step(self, x: Tensor, state: States, unchanged: int | None = None) -> tuple[Tensor, States] | None:
        """As the stack's step; None for input that it does not fit, which the ordinary step will explain. Raises
        Changed if the memory that `unchanged` tells of is not as it was.

        The checks are those of the ordinary step, each in its cheapest form; all that follows from the shape of x is
        looked up by it."""
        if type(x) is not Tensor or x.dtype is not self.dtype or not x.is_cpu or x.is_neg():
            return None
        known = self.shapes.get(x.shape) or self._learn(x.shape)
        if known is None:
            return None
        parts: Any = (state,) if self.states == 1 else state
        if type(parts) is not tuple or len(parts) != self.states:
            return None
        dtype, shape, state_like = self.state_dtype, known.shape, known.state
        before, after, held = [], [], []
        for part in parts:
            if type(part) is not Tensor or part.dtype is not dtype or part.shape != shape:
                return None
            if not part.is_cpu or part.is_neg() or (self.complex and part.is_conj()):
                return None
            if not part.is_contiguous():
                held.append(part := part.contiguous())
            before.append(part.data_ptr())
            after.append(empty_like(state_like))
        places = [*before, *map(data_ptr, after)]
        # Such as those of x[:, t] of a batch-first batch.
        strides = known.strides if x.is_contiguous() else (0, *x.stride())[-2:]
        first, *others = self.steppers
        y = first(unchanged, known.batch, x, strides, known.output, places)
        for stepper in others:
            places = [place + known.bytes for place in places]
            above = stepper(None, known.batch, y, (self.width, 1), known.output, places)
            y = above + y if self.residual else above
        return (y, after[0]) if self.states == 1 else (y, tuple(after))

    def _learn(self, shape: torch.Size) -> Shapes | None:
        if not self.serves or len(shape) not in (1, 2) or shape[-1] != self.input_size or not shape.numel():
            return None
        if len(self.shapes) > 100:
            self.shapes.clear()
        output = torch.empty((*shape[:-1], self.width), dtype=self.dtype, device="cpu")
        state = torch.empty((self.depth, *shape[:-1], self.hidden), dtype=self.state_dtype, device="cpu")
        batch = shape[0] if len(shape) == 2 else 1
        strides = (self.input_size, 1)
        known = self.shapes[shape] = Shapes(batch, strides, state.shape, state, output, state[0].nbytes)
        return known


class Shapes(NamedTuple):
    """What follows from the shape of an input."""

    batch: int
    strides: tuple[int, int]  # of x where it is contiguous
    shape: torch.Size  # of a state
    state: Tensor  # of these two only the shape and type are used
    output: Tensor
    bytes: int  # of one layer's state


def lean_step(stack: RecurrentStack, x: Tensor, state: States | None) -> tuple[Tensor, States] | None:
    """As the stack's step; None where the ordinary step must run, or explain what is wrong."""
    if is_grad_enabled() or is_compiling() or transformed() or is_tracing():
        return None
    if state is None:
        if not isinstance(x, Tensor) or x.dim() not in (1, 2):
            return None
        state = stack.initial_state(len(x) if x.dim() == 2 else None)
    stream: Stream | None = stack.__dict__.get("_stream")
    if stream is None or not (stream.fixed or stream.made_from.has_same_parts()):
        return _renewed(stack).step(x, state)
    try:
        return stream.step(x, state, None if stream.fixed else stream.made_from.memory.address)
    except Changed:
        return _renewed(stack).step(x, state)


def current_stream(stack: RecurrentStack) -> Stream:
    """The stack's stream, renewed where needed."""
    stream: Stream | None = stack.__dict__.get("_stream")
    return stream if stream is not None and stream.is_current() else _renewed(stack)


def _renewed(stack: RecurrentStack) -> Stream:
    stack.__dict__["_stream"] = None  # an entry while it is made, as there will be then
    stream = stack.__dict__["_stream"] = Stream(stack)
    return stream


def _takes_lean_steps(stack: RecurrentStack) -> bool:
    if stack.bidirectional or (stack.training and stack.dropout):
        return False
    if any(core.training and (core.recurrent_dropout or core.weight_drop) for core in stack.cores):
        return False
    # What torch.nn.utils computes may differ from step to step.
    return not any(is_computed(m) for layer in stack.cores for m in layer.modules() if m is not layer)


def _stepper(layer: RecurrentLayer) -> Stepper | None:
    if layer.make_stepper is not None:
        return layer.make_stepper()
    inputs = step_inputs_of(layer)
    return None if inputs is None else Stepper(inputs)


def step_inputs_of(layer: RecurrentLayer) -> Inputs | None:
    """What the native core runs for a single step, or None where it cannot."""
    program = native_program(layer)
    if program is None or layer.backend != "native":
        return None
    if program.plan.phases > 1 or layer.line > 1:
        return None
    if layer.training and layer.zoneout is not None:  # other noise in every step
        return None
    if not all(native.can_serve(p) for p in layer.parameters()):
        return None
    u = written_out(layer.input, layer.recurrent.input_scale())
    own = None if program.own is None else program.own.to(u.dtype.to_real())
    return step_inputs(program._replace(own=own), u, layer.cell.input_bias())
