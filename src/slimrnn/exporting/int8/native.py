"""int8 layers in the native core: their scans, single steps, and products with a matrix, all with the same bits.

Shape suffixes: N rows, I input width, M outputs.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import torch
from torch import Tensor

from slimrnn.layers.fingerprint import Memory
from slimrnn.ops.calls import Call, Inputs
from slimrnn.ops.library import native_library
from slimrnn.ops.operators import traced, transformed
from slimrnn.ops.programs import CellProgram, NativeCell
from slimrnn.ops.stepping import Stepper
from slimrnn.ops.terms import Plan
from slimrnn.tracing.program import NUMBER, PLACES


def can_serve(x: Tensor) -> bool:
    """Whether the native core can run on these inputs here and now."""
    if x.device.type != "cpu" or not x.numel() or native_library() is None:
        return False
    return not (torch.compiler.is_compiling() or traced() or transformed())


def run(inputs: Inputs, u_scale: Tensor) -> tuple[Tensor, Tensor]:
    """The output (T, B, H) and the last states (S, B, H); the scales are those of u, if the inputs have one."""
    states, batch, width = inputs.state.shape
    out = inputs.state.new_empty(inputs.time, batch, width)
    last = inputs.state.new_empty(states, batch, width)
    Call(inputs, inputs.time, out=out, last=last, u_scale=_of_u(inputs, u_scale)).run("slimrnn_forward")
    return out, last


def stepper(inputs: Inputs, u_scale: Tensor) -> Stepper:
    """Steps with weights packed once."""
    return Stepper(inputs, u_scale=_of_u(inputs, u_scale))


def _of_u(inputs: Inputs, u_scale: Tensor) -> Tensor | None:
    return None if inputs.u is None else u_scale


FEW = 64  # rows: for more, packing the weights anew is no cost, and threads share the rows


def affine(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b, (..., I) -> (..., M)"""
    rows = x.reshape(-1, x.shape[-1])
    output, _ = run(_one_step(rows, weight, bias), scale.unsqueeze(0))
    return output.reshape(*x.shape[:-1], len(weight))


def _one_step(x_NI: Tensor, weight: Tensor, bias: Tensor | None) -> Inputs:
    """Of a cell that shows its input product, with a sequence for each vector."""
    start, none = x_NI.new_zeros(1, len(x_NI), len(weight)), cast(Any, None)
    u, one_gate = weight.unsqueeze(0), None if bias is None else bias.unsqueeze(0)
    return Inputs(x_NI.unsqueeze(0), u, one_gate, start, none, none, none, none, none, none, none, [], reading(), False)


class PackedProduct:
    """W x + b for few rows, with W packed once."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None) -> None:
        self.tensors = (weight, scale, bias)
        held = [t for t in self.tensors if t is not None]
        self.places = [t.data_ptr() for t in held]
        self.memory = Memory([(t.data_ptr(), t.nbytes) for t in held])
        some = scale.new_empty(1, weight.shape[-1])
        self.step = stepper(_one_step(some, weight, bias), scale.unsqueeze(0))

    def is_of(self, *tensors: Tensor | None) -> bool:
        """Whether these are the tensors that were packed; what they hold is looked at in every call."""
        if any(a is not b for a, b in zip(self.tensors, tensors, strict=True)):
            return False
        return self.places == [t.data_ptr() for t in tensors if t is not None]

    def __call__(self, x: Tensor) -> Tensor:
        """(..., I) -> (..., M); Changed where the weights have."""
        rows = x.reshape(-1, x.shape[-1])
        rows = rows if rows.stride(-1) == 1 else rows.contiguous()
        like = rows.new_empty(len(rows), len(self.tensors[0]))
        state = torch.empty_like(like)
        strides, places = (rows.stride(0), 1), [like.data_ptr(), state.data_ptr()]
        y = self.step(self.memory.address, len(rows), rows, strides, like, places)
        return y.reshape(*x.shape[:-1], y.shape[-1])


@cache
def reading() -> Plan:
    """A cell whose state is U x + b."""
    places = tuple((PLACES.index(kind), 0, 0, 1) for kind in ("SLOT", "AFTER"))
    program = ((NUMBER["LOOP"], 2, 0, 0, 0), (NUMBER["LOAD"], 0, 0, 0, 0), (NUMBER["STORE"], 1, 0, 0, 0))
    cell = CellProgram(
        gates=1,
        matrices=0,
        states=1,
        own_rows=0,
        slots=1,
        kept=0,
        spares=0,
        row_sums=0,
        registers=1,
        places=places,
        forward=program,
    )
    return Plan(NativeCell(cell), False, (), int8=True)
