"""Calls of the native library: a filled-in slimrnn_scan."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from slimrnn.ops.library import ScanStruct, TensorStruct, TermStruct, check, native_library, structures
from slimrnn.ops.terms import Plan

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
        self.tensors = self._tensors(gradients)
        self.terms = self._terms()
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
            term_count=len(self.plan.terms),
            phases=self.plan.phases,
            leaky=self.plan.leaky,
            own_rows=0 if own is None else own.shape[-2],
            time=time,
            batch=self.batch,
            width=width,
            terms=self.terms,
        )
        self.point(state=self.state, own=self.own, mask=self.mask, lengths=self.lengths)

    def _tensors(self, gradients: Sequence[Tensor]) -> ctypes.Array[TensorStruct]:
        structs = (TensorStruct * len(self.weights))()
        for number, (struct, tensor) in enumerate(zip(structs, self.weights, strict=True)):
            struct.data = tensor.data_ptr()
            if gradients:
                struct.gradient = gradients[number].data_ptr()
            pair = self.plan.complex and tensor.is_floating_point()
            struct.dims = tensor.dim() - pair
            struct.shape[: struct.dims] = tensor.shape[: struct.dims]
        return structs

    def _terms(self) -> ctypes.Array[TermStruct]:
        structs, first = (TermStruct * len(self.plan.terms))(), 0
        for struct, (structure, count) in zip(structs, self.plan.terms, strict=True):
            struct.structure, struct.tensor_count = structures()[structure], count
            struct.tensors = ctypes.pointer(self.tensors[first])
            first += count
        return structs

    def point(self, **tensors: Tensor | None) -> None:
        for name, tensor in tensors.items():
            setattr(self.struct, name, None if tensor is None else tensor.data_ptr())

    def run(self, function: str) -> None:
        check(getattr(native_library(), function)(ctypes.byref(self.struct)))
