"""Single steps without python in the way: weights packed once, one C call per step."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence

from torch import Tensor

from slimrnn.ops import native
from slimrnn.ops.calls import Call
from slimrnn.ops.library import check, native_library
from slimrnn.ops.terms import Program


class Stepper:
    """A layer's weights, packed for `slimrnn_step`."""

    def __init__(self, program: Program, u: Tensor, bias: Tensor | None) -> None:
        _, hidden, input_size = u.shape
        self.states = program.plan.cell.states
        state = (u.new_empty(1, hidden),) * self.states
        bias = None if bias is None else bias.clone()  # is not packed
        inputs = native.as_inputs(program, state[0].real.new_empty(1, 1, input_size), u, bias, state)
        self.call = Call(inputs, 1)
        self.bytes = hidden * u.element_size()
        self.pointers = ctypes.c_void_p * self.states
        library, handle = native_library(), ctypes.c_void_p()
        assert library is not None
        check(library.slimrnn_open(ctypes.byref(self.call.struct), ctypes.byref(handle)))
        self.handle, self.function = handle, library.slimrnn_step
        weakref.finalize(self, library.slimrnn_close, handle)

    def __call__(
        self, x: Tensor, batch: int, before: Sequence[Tensor], after: Sequence[Tensor], depth: int, out: Tensor
    ) -> None:
        """Into `out` (B, W), for contiguous x (B, I); of the states (L, B, H) number `depth` is meant."""
        at = depth * batch * self.bytes
        pointers = self.pointers
        status = self.function(
            self.handle,
            batch,
            x.data_ptr(),
            pointers(*[part.data_ptr() + at for part in before]),
            pointers(*[part.data_ptr() + at for part in after]),
            out.data_ptr(),
        )
        if status:
            check(status)
