"""A call of the native library: what goes in, and the C struct filled in with it.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, W real numbers of a state vector, S states.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from slimrnn.ops.library import ScanStruct, TensorStruct, TermStruct, check, native_library, structures
from slimrnn.ops.terms import Plan

ONE_THREAD = 1 << 16  # gates: starting a thread costs as much as these
DTYPES = {torch.float32: 0, torch.float64: 1}


class Inputs(NamedTuple):
    """What a scan reads. All tensors are real: a complex number is a pair."""

    x: Tensor  # (T, B, I); or, without u, the products U x + b: (T, B, G, W); with tokens, those of each: (V, G, W)
    u: Tensor | None  # (G, W, I)
    bias: Tensor | None  # (G, W)
    state: Tensor  # (S, B, W)
    own: Tensor | None  # (phases, rows, W): parameters that act within the step
    mask: Tensor | None  # (B, W): factors on h before every product
    lengths: Tensor | None  # (B)
    seed: Tensor | None  # of noise: one int64
    tokens: Tensor | None  # (T, B) int64: the row of x that a step takes
    weights: Sequence[Tensor]  # of the terms
    plan: Plan
    reverse: bool
    first_step: int = 0  # of these steps in the whole sequence, for noise

    @property
    def time(self) -> int:
        return len(self.x if self.tokens is None else self.tokens)


SINGLE = 9  # tensors of Inputs before the weights


def with_tensors(tensors: Sequence[Any], plan: Plan, reverse: bool, first_step: int) -> Inputs:
    """Inputs from their tensors in order, the weights last, one by one."""
    x, u, bias, state, own, mask, lengths, seed, tokens, *weights = tensors
    return Inputs(x, u, bias, state, own, mask, lengths, seed, tokens, weights, plan, reverse, first_step)


class Call:
    """A filled-in slimrnn_scan, and the tensors that its pointers need alive."""

    def __init__(self, inputs: Inputs, time: int, gradients: Sequence[Tensor] = ()) -> None:
        plan, state = inputs.plan, inputs.state
        _, batch, width = state.shape
        self.terms = FilledTerms(plan, inputs.weights, gradients)
        self.cell = plan.cell.struct(width)
        enough = time * state.numel() * plan.cell.gates > ONE_THREAD
        self.struct = ScanStruct(
            dtype=DTYPES[state.dtype],
            is_complex=plan.complex,
            reverse=inputs.reverse,
            threads=min(torch.get_num_threads(), batch) if enough else 1,
            term_count=len(plan.terms),
            phases=plan.phases,
            time=time,
            batch=batch,
            width=width,
            input_size=0 if inputs.u is None else inputs.u.shape[-1],
            vocabulary=0 if inputs.tokens is None else len(inputs.x),
            first_step=inputs.first_step,
            seed=0 if inputs.seed is None else int(inputs.seed),
            cell=ctypes.pointer(self.cell),
            terms=self.terms.structs,
        )
        lengths = None if inputs.lengths is None else inputs.lengths.to(torch.int64)
        self.held: list[Tensor] = []
        self.point(x=inputs.x, tokens=inputs.tokens, u=inputs.u, bias=inputs.bias, state=state, own=inputs.own)
        self.point(mask=inputs.mask, lengths=lengths)

    def point(self, **tensors: Tensor | None) -> None:
        """Set pointers of the struct; a tensor that is not contiguous is copied, so results must be."""
        for name, tensor in tensors.items():
            if tensor is None:
                setattr(self.struct, name, None)
            else:
                self.held.append(tensor.contiguous())
                setattr(self.struct, name, self.held[-1].data_ptr())

    def run(self, function: str) -> None:
        check(getattr(native_library(), function)(ctypes.byref(self.struct)))


class FilledTerms:
    """Filled-in slimrnn_terms, and the tensors and arrays that their pointers need alive."""

    def __init__(self, plan: Plan, weights: Sequence[Tensor], gradients: Sequence[Tensor] = ()) -> None:
        self.weights = [w.contiguous() for w in weights]
        self.tensors = (TensorStruct * len(self.weights))()
        for number, (struct, tensor) in enumerate(zip(self.tensors, self.weights, strict=True)):
            struct.data = tensor.data_ptr()
            if gradients:
                struct.gradient = gradients[number].data_ptr()
            struct.dims = tensor.dim() - (plan.complex and tensor.is_floating_point())  # a pair is no axis
            struct.shape[: struct.dims] = tensor.shape[: struct.dims]
        self.structs, first = (TermStruct * len(plan.terms))(), 0
        for term, (structure, count) in zip(self.structs, plan.terms, strict=True):
            term.structure, term.tensor_count = structures()[structure], count
            term.tensors = ctypes.pointer(self.tensors[first])
            first += count
