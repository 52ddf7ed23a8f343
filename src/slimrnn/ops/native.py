"""A layer's scan on the native core, and when it can be used."""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor

from slimrnn._fields import field_dtype, pairs_flat, real_view
from slimrnn.ops.calls import DTYPES, SINGLE, Inputs
from slimrnn.ops.eager import EagerScan, can_bypass_dispatcher
from slimrnn.ops.operators import Definition, as_arguments, calling, run_forward, traced, transformed
from slimrnn.ops.reference import Resets
from slimrnn.ops.terms import Program

HALF = (torch.float16, torch.bfloat16)


def scan(inputs: Inputs, definition: Definition | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The output as of the reference layer, real and imaginary parts side by side, and the last state."""
    out, last = run(inputs, definition)
    if inputs.plan.complex:
        last = torch.view_as_complex(last.reshape(*last.shape[:-1], -1, 2))
    return out, tuple(last.unbind(0))


def run(inputs: Inputs, definition: Definition | None = None) -> tuple[Tensor, Tensor]:
    """The output and the last states (S, B, W), where a complex number is a pair."""
    tensors = [t for t in (*inputs[:5], inputs.reset_state, *inputs.weights) if t is not None]
    # A trace is differentiated or not wherever it is run, and not as it was made.
    keep = traced() or (torch.is_grad_enabled() and any(t.requires_grad for t in tensors))
    if not can_bypass_dispatcher(tensors):
        calling.definition = definition if keep else None
        try:
            out, last, *_ = torch.ops.slimrnn.scan(*as_arguments(inputs), keep)
        finally:
            calling.definition = None
    elif keep:
        out, last = EagerScan.apply(  # type: ignore[no-untyped-call]
            inputs.plan, inputs.reverse, inputs.first_step, definition, *inputs[:SINGLE], *inputs.weights
        )
    else:
        out, last, *_ = run_forward(inputs, False)
    return out, last


def as_inputs(
    program: Program,
    x: Tensor,
    u: Tensor | None,
    bias: Tensor | None,
    state: tuple[Tensor, ...],
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
    reverse: bool = False,
    seed: Tensor | None = None,
    first_step: int = 0,
    tokens: Tensor | None = None,
    resets: Resets | None = None,
) -> Inputs:
    """A layer's tensors as the core takes them: real, a complex number as a pair.

    x is (T, B, I) with input weights u (G, H, I), or without u the products (T, B, G, H), with tokens (T, B) those of
    each token (V, G, H)."""
    plan, weights, own, _ = program
    start = torch.stack([pairs_flat(part) for part in state])  # a copy: the caller's own may change before backward
    anew = None if resets is None else torch.stack([pairs_flat(part) for part in resets.state])
    at = None if resets is None else resets.at_TB
    own = None if own is None else own.to(start.dtype)  # a cell may have forgotten the type that it was given
    if plan.complex:
        weights = [real_view(weight) for weight in weights]
        own = None if own is None else own.repeat_interleave(2, -1)
        mask = None if mask is None else mask.repeat_interleave(2, -1)
        bias = None if bias is None else pairs_flat(bias.to(field_dtype(start.dtype, True)))  # a cell's may be real
        x = x if u is not None else pairs_flat(x)
        # real input: (G, H, I) complex -> (G, 2H, I) real; torch 2.10 cannot differentiate a transposed view with I = 1
        u = None if u is None else torch.stack([u.real, u.imag], -2).flatten(-3, -2)
    return Inputs(x, u, bias, start, own, mask, lengths, seed, tokens, at, anew, weights, plan, reverse, first_step)


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
