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
from slimrnn.ops.operands import check_operands
from slimrnn.ops.terms import Plan, kind_of

ONE_THREAD = 1 << 16  # gates: starting a thread costs as much as these
DTYPES = {torch.float32: 0, torch.float64: 1}
INT8 = 2  # float32, with matrices in int8


class Inputs(NamedTuple):
    """What a scan reads. All tensors are real: a complex number is a pair."""

    x: Tensor  # (T, B, I); or, without u, the products U x + b: (T, B, G, W); with tokens, those of each: (V, G, W)
    u: Tensor | None  # (G, W, I)
    bias: Tensor | None  # (G, W)
    state: Tensor  # (S, B, W)
    own: Tensor | None  # (phases, rows, W): parameters that act within the step
    mask: Tensor | None  # (B, W), or (B, M, W) for each matrix: factors on h before every product
    lengths: Tensor | None  # (B)
    seed: Tensor | None  # of noise: one int64
    tokens: Tensor | None  # (T, B) int64: the row of x that a step takes
    resets: Tensor | None  # (T, B) bool: the state before the step is
    reset_state: Tensor | None  # (S, B, W)
    weights: Sequence[Tensor]  # of the terms
    plan: Plan
    reverse: bool
    first_step: int = 0  # of these steps in the whole sequence, for noise

    @property
    def time(self) -> int:
        return (self.x if self.tokens is None else self.tokens).shape[0]  # not len, which torch.export would fix


SINGLE = 11  # tensors of Inputs before the weights


def with_tensors(tensors: Sequence[Any], plan: Plan, reverse: bool, first_step: int) -> Inputs:
    """Inputs from their tensors in order, the weights last, one by one."""
    single: Any = tensors[:SINGLE]
    return Inputs._make([*single, list(tensors[SINGLE:]), plan, reverse, first_step])


def in_memory(tensor: Tensor) -> Tensor:
    """Its numbers one after the other, and none of them waiting to be negated."""
    return tensor.resolve_neg().contiguous()


class Call:
    """A filled-in slimrnn_scan, and the tensors that its pointers need alive."""

    def __init__(self, inputs: Inputs, time: int, gradients: Sequence[Tensor] = (), **results: Tensor | None) -> None:
        """`results` are other tensors that the struct points to. One that is not contiguous is copied, so those that
        are written must be."""
        x, u, bias, state, own, mask, lengths, seed, tokens, resets, anew, weights, plan, reverse, first_step = inputs
        lengths = None if lengths is None else lengths.to(torch.int64)
        if not plan.int8:  # whose weights are of several types, all made together
            check_operands(inputs if lengths is None else inputs._replace(lengths=lengths), time)
        _, batch, width = state.shape
        self.terms = FilledTerms(plan, weights, gradients)
        self.cell = plan.cell.struct(width)
        results.update(x=x, u=u, bias=bias, state=state, own=own, mask=mask, lengths=lengths, tokens=tokens)
        results.update(resets=resets, reset_state=anew)
        self.held = {name: in_memory(tensor) for name, tensor in results.items() if tensor is not None}
        enough = time * state.numel() * plan.cell.gates > ONE_THREAD
        self.struct = ScanStruct(
            dtype=INT8 if plan.int8 else DTYPES[state.dtype],
            is_complex=plan.complex,
            reverse=reverse,
            threads=torch.get_num_threads() if enough else 1,
            term_count=len(plan.terms),
            phases=plan.phases,
            masks=1 if mask is None or mask.dim() == 2 else mask.shape[1],
            time=time,
            batch=batch,
            width=width,
            input_size=0 if u is None else u.shape[-1],
            vocabulary=0 if tokens is None else len(x),
            first_step=first_step,
            seed=0 if seed is None else int(seed),
            cell=ctypes.pointer(self.cell),
            terms=self.terms.structs,
            **{name: tensor.data_ptr() for name, tensor in self.held.items()},
        )

    def run(self, function: str) -> None:
        check(getattr(native_library(), function)(ctypes.byref(self.struct)))


class FilledTerms:
    """Filled-in slimrnn_terms, and the tensors and arrays that their pointers need alive."""

    def __init__(self, plan: Plan, weights: Sequence[Tensor], gradients: Sequence[Tensor] = ()) -> None:
        self.weights = [in_memory(w) for w in weights]
        tensors = []
        for number, weight in enumerate(self.weights):
            gradient = gradients[number].data_ptr() if gradients else None
            is_pairs = plan.complex and weight.is_floating_point()
            shape = weight.shape[:-1] if is_pairs else weight.shape  # a pair is no axis
            tensors.append(TensorStruct(weight.data_ptr(), gradient, len(shape), tuple(shape)))
        self.tensors = (TensorStruct * len(tensors))(*tensors)
        terms, first = [], 0
        for structure, count in plan.terms:
            at = ctypes.pointer(self.tensors[first]) if first else self.tensors
            terms.append(TermStruct(structures()[kind_of(structure)], count, at))
            first += count
        self.structs = (TermStruct * len(terms))(*terms)
