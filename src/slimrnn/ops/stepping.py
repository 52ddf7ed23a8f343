"""Single steps without python in the way: weights packed once, one C call per step."""

from __future__ import annotations

import ctypes
import struct
import weakref

from torch import Tensor

from slimrnn.ops import native
from slimrnn.ops.calls import Call
from slimrnn.ops.library import CHANGED, check, native_library
from slimrnn.ops.terms import Program


class Stepper:
    """A layer's weights, packed. `function(handle, unchanged, batch, pack(x, *strides, y, *before, *after))` takes a
    step from x (B, I) and the states (B, W) to y (B, W) and the states after, given by their addresses; its status is
    for `check_step`. `unchanged` is the address of a MemoryStruct, or None."""

    def __init__(self, program: Program, u: Tensor, bias: Tensor | None) -> None:
        _, hidden, input_size = u.shape
        states = program.plan.cell.states
        state = (u.new_empty(1, hidden),) * states
        bias, own = (None if t is None else t.clone() for t in (bias, program.own))  # which are not packed
        inputs = native.as_inputs(program._replace(own=own), state[0].real.new_empty(1, 1, input_size), u, bias, state)
        self.call = Call(inputs, 1)
        self.pack = struct.Struct(f"=Q2q{1 + 2 * states}Q").pack
        library, handle = native_library(), ctypes.c_void_p()
        assert library is not None
        check(library.slimrnn_open(ctypes.byref(self.call.struct), ctypes.byref(handle)))
        self.handle, self.function = handle.value, library.slimrnn_step
        weakref.finalize(self, library.slimrnn_close, handle)


class Changed(Exception):
    """The weights are not those that were packed."""


def check_step(status: int) -> None:
    """Raise for a status other than 0."""
    if status == CHANGED:
        raise Changed
    check(status)
