"""Single steps without python in the way: weights packed once, one C call per step."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Sequence
from typing import Any

from torch import Tensor, empty_like

from slimrnn.ops import native
from slimrnn.ops.calls import Call, Inputs
from slimrnn.ops.library import CHANGED, check, native_library
from slimrnn.ops.operands import check_operands
from slimrnn.ops.terms import Program


def step_inputs(program: Program, u: Tensor, bias: Tensor | None) -> Inputs:
    """Of single steps; x and the state stand for any of their shape."""
    _, hidden, input_size = u.shape
    state = (u.new_empty(1, hidden),) * program.plan.cell.states
    inputs = native.as_inputs(program, state[0].real.new_empty(1, 1, input_size), u, bias, state)
    check_operands(inputs, 1)
    return inputs


class Stepper:
    """A layer's weights, packed for `slimrnn_step`."""

    def __init__(self, inputs: Inputs, **more: Any) -> None:
        """`more` is for Call, such as the scales of int8 layers."""
        states = inputs.plan.cell.states
        bias, own = (None if t is None else t.clone() for t in (inputs.bias, inputs.own))  # which are not packed
        self.call = Call(inputs._replace(bias=bias, own=own), 1, **more)
        self.dtype, self.input_size = inputs.state.dtype, inputs.x.shape[-1]
        self.width, self.known = inputs.state.shape[-1], inputs.x  # of `known`, the shape has been checked
        self.pack = struct.Struct(f"=Q2q{1 + 2 * states}Q").pack
        library, handle = native_library(), ctypes.c_void_p()
        assert library is not None
        check(library.slimrnn_open(ctypes.byref(self.call.struct), ctypes.byref(handle)))
        self.handle, self.function = handle.value, library.slimrnn_step
        weakref.finalize(self, library.slimrnn_close, handle)

    def __call__(
        self,
        unchanged: int | None,
        batch: int,
        x: Tensor,
        strides: tuple[int, ...],
        output_like: Tensor,
        states: Sequence[int],
    ) -> Tensor:
        """y (B, W) for x (B, I); `states` are the addresses of those before the step (B, W), then of those after it.

        Raises Changed, and does nothing, if memory is not as it was, which `unchanged` tells of: the address of a
        MemoryStruct, or None."""
        if output_like is not self.known:
            self._check(x, output_like)
        y = empty_like(output_like)
        places = self.pack(x.data_ptr(), *strides, y.data_ptr(), *states)
        status = self.function(self.handle, unchanged, batch, places)
        if status == CHANGED:
            raise Changed
        if status:
            check(status)
        return y

    def _check(self, x: Tensor, output_like: Tensor) -> None:
        if x.dtype is not self.dtype or output_like.dtype is not self.dtype:
            raise TypeError(f"expected single steps in {self.dtype}, as the layer's weights, got {x.dtype}")
        if x.shape[-1] != self.input_size or output_like.shape[-1] != self.width:
            got = f"{x.shape[-1]} and {output_like.shape[-1]}"
            raise ValueError(f"expected input and output of widths {self.input_size} and {self.width}, got {got}")
        self.known = output_like


class Changed(Exception):
    """The weights are not those that were packed."""
