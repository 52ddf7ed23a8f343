"""Calls of the native library: a filled-in slimrnn_scan."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from slimrnn.ops.library import ScanStruct, TermStruct, check, native_library
from slimrnn.ops.terms import NativeTerm, Plan

GATES = {
    "tanh": 1,
    "relu": 1,
    "identity": 1,
    "modrelu": 1,
    "lstm": 4,
    "gru_after": 3,
    "gru_before": 3,
}  # as slimrnn_cell
ONE_THREAD = 1 << 16  # gates: starting a thread costs as much as these
DTYPES = {torch.float32: 0, torch.float64: 1}


class Call:
    """A filled-in slimrnn_scan, and the tensors that its pointers need alive."""

    def __init__(
        self,
        plan: str,
        time: int,
        state: Tensor,
        weights: Sequence[Tensor],
        own: Tensor | None,
        mask: Tensor | None,
        lengths: Tensor | None,
        reverse: bool,
        gradients: Sequence[Tensor] = (),
    ) -> None:
        self.plan = Plan.decode(plan)
        count, self.batch, width = state.shape
        gates = GATES[self.plan.cell]
        self.state = state.contiguous()
        self.mask = None if mask is None else mask.contiguous()
        self.lengths = None if lengths is None else lengths.to(torch.int64).contiguous()
        self.own = None if own is None else own.contiguous()
        self.reverse, self.dtype = reverse, DTYPES[state.dtype]
        self.weights = [w.contiguous() for w in weights]
        size = width // 2 if self.plan.complex else width
        sums = self.plan.split(gradients) if gradients else [None] * len(self.plan.terms)
        terms = zip(self.plan.split(self.weights), sums, strict=True)
        self.terms = [FilledTerm(term, gates, size, self.plan.complex, d) for term, d in terms]
        self.structs = (TermStruct * len(self.terms))(*(term.struct for term in self.terms))
        enough = time * state.numel() * gates > ONE_THREAD
        self.threads = min(torch.get_num_threads(), self.batch) if enough else 1
        self.struct = ScanStruct(
            dtype=self.dtype,
            cell=list(GATES).index(self.plan.cell),
            is_complex=self.plan.complex,
            gates=gates,
            states=count,
            reverse=reverse,
            threads=self.threads,
            term_count=len(self.terms),
            phases=self.plan.phases,
            leaky=self.plan.leaky,
            own_rows=0 if own is None else own.shape[-2],
            time=time,
            batch=self.batch,
            width=width,
            terms=self.structs,
        )
        self.point(state=self.state, own=self.own, mask=self.mask, lengths=self.lengths)

    def point(self, **tensors: Tensor | None) -> None:
        for name, tensor in tensors.items():
            setattr(self.struct, name, None if tensor is None else tensor.data_ptr())

    def run(self, function: str) -> None:
        check(getattr(native_library(), function)(ctypes.byref(self.struct)))


class FilledTerm:
    """A filled-in slimrnn_term, and the arrays that its pointers need alive."""

    def __init__(
        self, term: NativeTerm, gates: int, size: int, pairs: bool, gradient: NativeTerm | None = None
    ) -> None:
        plan = term.plan
        self.tensors = term.tensors
        self.data = (ctypes.c_void_p * len(term.tensors))(*(t.data_ptr() for t in term.tensors))
        self.sizes = (ctypes.c_int64 * len(plan.sizes))(*plan.sizes)
        self.struct = TermStruct(
            kind=plan.kind,
            gates=gates,
            size=size,
            is_complex=pairs,
            count=plan.count,
            shared=plan.shared,
            sizes=self.sizes,
            data=self.data,
        )
        if gradient is not None:
            self.sums = (ctypes.c_void_p * len(term.tensors))(*(t.data_ptr() for t in gradient.tensors))
            self.struct.gradient = self.sums
