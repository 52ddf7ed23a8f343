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
    """A layer's weights, packed for `slimrnn_step`."""

    def __init__(self, program: Program, u: Tensor, bias: Tensor | None) -> None:
        _, hidden, input_size = u.shape
        states = program.plan.cell.states
        state = (u.new_empty(1, hidden),) * states
        bias = None if bias is None else bias.clone()  # is not packed
        inputs = native.as_inputs(program, state[0].real.new_empty(1, 1, input_size), u, bias, state)
        self.call = Call(inputs, 1)
        self.pack = struct.Struct(f"={2 + 2 * states}Q").pack
        library, handle = native_library(), ctypes.c_void_p()
        assert library is not None
        check(library.slimrnn_open(ctypes.byref(self.call.struct), ctypes.byref(handle)))
        self.handle, self.function = handle.value, library.slimrnn_step
        weakref.finalize(self, library.slimrnn_close, handle)

    def __call__(self, unchanged: int | None, batch: int, *places: int) -> bool:
        """From x (B, I) to y (B, W) and the states (B, W): the addresses of x, y, the states before, the states after.

        False, and nothing done, if the memory that `unchanged` tells of (the address of a MemoryStruct) has changed."""
        status = self.function(self.handle, unchanged, batch, self.pack(*places))
        if status == 0:
            return True
        if status != CHANGED:
            check(status)
        return False
