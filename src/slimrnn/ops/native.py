"""A layer's scan on the native core, and when it can be used."""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor

from slimrnn._fields import pairs_flat, real_view
from slimrnn.ops.calls import DTYPES
from slimrnn.ops.eager import EagerScan, nobody_is_watching
from slimrnn.ops.operators import Definition, calling, run_forward, traced, transformed
from slimrnn.ops.terms import Plan, Program

HALF = (torch.float16, torch.bfloat16)


def scan(
    program: Program,
    x: Tensor,
    u: Tensor | None,
    bias: Tensor | None,
    state: tuple[Tensor, ...],
    mask_BH: Tensor | None = None,
    lengths_B: Tensor | None = None,
    reverse: bool = False,
    definition: Definition | None = None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run a program over x (T, B, I) with input weights u (G, H, I), or over products x (T, B, G, H).

    Returns what the reference layer does: a complex output as real and imaginary parts side by side, and the state."""
    pairs = state[0].is_complex()
    plan, weights, u, bias, own = operands(program, u, bias, pairs)
    if pairs:
        mask_BH = None if mask_BH is None else mask_BH.repeat_interleave(2, -1)
        x = x if u is not None else pairs_flat(x)
    start = torch.stack([pairs_flat(part) for part in state])
    tensors = [t for t in (x, u, bias, start, own, *weights) if t is not None]
    # A trace is differentiated or not wherever it is run, and not as it was made.
    keep = traced() or (torch.is_grad_enabled() and any(t.requires_grad for t in tensors))
    if not nobody_is_watching(tensors):
        calling.definition = definition if keep else None
        try:
            out, last, *_ = torch.ops.slimrnn.scan(
                x, u, bias, start, weights, own, mask_BH, lengths_B, plan, reverse, keep
            )
        finally:
            calling.definition = None
    elif keep:
        out, last = EagerScan.apply(  # type: ignore[no-untyped-call]
            x, u, bias, start, own, mask_BH, lengths_B, plan, reverse, definition, *weights
        )
    else:
        out, last, *_ = run_forward(x, u, bias, start, weights, own, mask_BH, lengths_B, plan, reverse, keep)
    if pairs:
        last = torch.view_as_complex(last.reshape(*last.shape[:-1], -1, 2))
    return out, tuple(last.unbind(0))


def operands(
    program: Program, u: Tensor | None, bias: Tensor | None, pairs: bool
) -> tuple[str, list[Tensor], Tensor | None, Tensor | None, Tensor | None]:
    """Plan, weights, u, bias and own as the operators take them: real, a complex number as a pair."""
    cell, own, terms, phases, leaky = program
    plan = Plan(cell, pairs, tuple(term.plan for term in terms), phases, leaky).encode()
    weights = [real_view(tensor) for term in terms for tensor in term.tensors]
    if pairs:
        own = None if own is None else own.repeat_interleave(2, -1)
        bias = None if bias is None else pairs_flat(bias)
        u = None if u is None else real_view(u).mT.flatten(-3, -2)  # real input: (G, H, I) complex -> (G, 2H, I) real
    return plan, weights, u, bias, own


def can_serve(x: Tensor) -> bool:
    """Whether the native core can run on these inputs here and now."""
    if x.device.type != "cpu" or x.dtype not in DTYPES or not x.numel():
        return False
    return torch.compiler.is_compiling() or not transformed()


def tell_of_half_precision(x: Tensor) -> None:
    """Say once that a layer of half precision runs in plain torch."""
    if x.dtype in HALF and x.device.type == "cpu" and not torch.compiler.is_compiling():
        _tell_once(x.dtype)


@cache
def _tell_once(dtype: torch.dtype) -> None:
    warnings.warn(
        f"a layer in {dtype} runs in plain torch on a CPU, many times slower than in float32: keep it in float32, with "
        "torch.autocast around it for the rest of the model",
        RuntimeWarning,
        stacklevel=2,
    )
