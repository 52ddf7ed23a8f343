"""The native scan as registered torch operators.

`slimrnn::scan` runs a cell over a sequence, `slimrnn::scan_backward` carries the state's gradient back and sums those
of the parameters on the way. Both see real tensors only: a complex one comes as pairs.

Shape suffixes: T time, B batch, G gates, W real numbers of a state vector, S states.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

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
FUNCTORCH: Any = torch._C._functorch


class Definition(NamedTuple):
    """The layer in plain torch, for derivatives that the native core does not have."""

    replay: Callable[..., tuple[Tensor, Tensor]]  # the reference scan on the operator's tensors
    products: Callable[[], Tensor]  # U x + b again, where the operator was given that


def scan(
    cell: str,
    own: Tensor | None,
    terms: Sequence[NativeTerm],
    x: Tensor,
    u: Tensor | None,
    bias: Tensor | None,
    state: tuple[Tensor, ...],
    mask_BH: Tensor | None = None,
    lengths_B: Tensor | None = None,
    reverse: bool = False,
    definition: Definition | None = None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Run a cell named in GATES over x (T, B, I) with input weights u (G, H, I), or over products x (T, B, G, H).

    Returns what the reference layer does: a complex output as real and imaginary parts side by side, and the state."""
    pairs = state[0].is_complex()
    plan, weights, u, bias, own = operands(cell, own, terms, u, bias, pairs)
    if pairs:
        mask_BH = None if mask_BH is None else mask_BH.repeat_interleave(2, -1)
        x = x if u is not None else _pairs_flat(x)
    start = torch.stack([_pairs_flat(part) for part in state])
    tensors = [t for t in (x, u, bias, start, own, *weights) if t is not None]
    keep = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    _calling.definition = definition if keep else None
    try:
        out, last, _, _ = torch.ops.slimrnn.scan(
            x, u, bias, start, weights, own, mask_BH, lengths_B, plan, reverse, keep
        )
    finally:
        _calling.definition = None
    if pairs:
        last = torch.view_as_complex(last.reshape(*last.shape[:-1], -1, 2))
    return out, tuple(last.unbind(0))


def operands(
    cell: str, own: Tensor | None, terms: Sequence[NativeTerm], u: Tensor | None, bias: Tensor | None, pairs: bool
) -> tuple[str, list[Tensor], Tensor | None, Tensor | None, Tensor | None]:
    """Plan, weights, u, bias and own as the operators take them: real, a complex number as a pair."""
    plan = Plan(cell, pairs, tuple(term.plan for term in terms)).encode()
    weights = [_real(tensor) for term in terms for tensor in term.tensors]
    if pairs:
        own = None if own is None else own.repeat_interleave(2, -1)
        bias = None if bias is None else _pairs_flat(bias)
        u = None if u is None else _real(u).mT.flatten(-3, -2)  # real input: (G, H, I) complex -> (G, 2H, I) real
    return plan, weights, u, bias, own


def can_serve(x: Tensor) -> bool:
    """Whether the native core can run on these inputs here and now."""
    if x.device.type != "cpu" or x.dtype not in DTYPES or not x.numel():
        return False
    return torch.compiler.is_compiling() or not transformed()


def transformed(*tensors: Tensor) -> bool:
    """Whether vmap, jvp or their kind is at work, which see through the reference scan only."""
    if FUNCTORCH.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
        return True
    return any(FUNCTORCH.is_legacy_batchedtensor(t) for t in tensors) if tensors else False  # is_grads_batched


def _real(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _pairs_flat(t: Tensor) -> Tensor:
    return _real(t).flatten(-2) if t.is_complex() else t


# --- the operators --------------------------------------------------------------------------------------------------


@torch.library.custom_op("slimrnn::scan", mutates_args=())
def _scan(
    x: Tensor,
    u: Tensor | None,
    bias: Tensor | None,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """-> out (T, B, W), last (S, B, W), and what backward needs or nothing: gates (T, B, G, W), states (T, B, W)."""
    out, last, gates, states = _results(x, u, state, keep)
    call = Call(plan, x.shape[0], state, weights, own, mask, lengths, reverse)
    held = [None if t is None else t.contiguous() for t in (x, u, bias)]
    call.struct.input_size = 0 if u is None else u.shape[-1]
    call.point(x=held[0], u=held[1], bias=held[2], out=out, last=last, gate_history=gates if gates.numel() else None)
    call.point(state_history=states if states.numel() else None)
    call.run("slimrnn_forward")
    return out, last, gates, states


@_scan.register_fake
def _(
    x: Tensor,
    u: Tensor | None,
    bias: Tensor | None,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _results(x, u, state, keep)


def _results(x: Tensor, u: Tensor | None, state: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    time, (count, batch, width) = x.shape[0], state.shape
    gate_count = x.shape[2] if u is None else u.shape[0]
    out = x.new_empty(time, batch, width)
    gates = x.new_empty((time, batch, gate_count, width) if keep and gate_count > 1 else (0,))
    states = x.new_empty((time, batch, width) if keep and count == 2 else (0,))
    return out, x.new_empty(count, batch, width), gates, states


@torch.library.custom_op("slimrnn::scan_backward", mutates_args=())
def _scan_backward(
    d_out: Tensor,
    d_last: Tensor,
    out: Tensor,
    gates: Tensor,
    states: Tensor,
    x: Tensor,
    u: Tensor | None,
    bias: Tensor | None,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
    want_wx: bool,
) -> list[Tensor]:
    """-> gradients of U x + b (T, B, G, W; empty unless wanted), u, bias, own (empty where those are None), state,
    weights..."""
    found = _gradients(out, plan, u, bias, state, weights, own, want_wx)
    d_wx, d_u, d_bias, d_own, d_state, *d_weights = found
    for sums in (d_u, d_bias, d_own, *d_weights):
        sums.zero_()
    call = Call(plan, out.shape[0], state, weights, own, mask, lengths, reverse, d_weights)
    held = [t if t is None else t.contiguous() for t in (x, u, bias, d_out, d_last)]
    call.struct.input_size = 0 if u is None else u.shape[-1]
    call.point(x=held[0], u=held[1], bias=held[2], d_out=held[3], d_last=held[4])
    call.point(out=out, gate_history=gates if gates.numel() else None)
    call.point(state_history=states if states.numel() else None)
    call.point(d_wx=d_wx if want_wx else None, d_u=d_u if u is not None else None, d_state=d_state)
    call.point(d_bias=d_bias if bias is not None else None, d_own=d_own if own is not None else None)
    call.run("slimrnn_backward")
    return found


@_scan_backward.register_fake
def _(
    d_out: Tensor,
    d_last: Tensor,
    out: Tensor,
    gates: Tensor,
    states: Tensor,
    x: Tensor,
    u: Tensor | None,
    bias: Tensor | None,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
    want_wx: bool,
) -> list[Tensor]:
    return _gradients(out, plan, u, bias, state, weights, own, want_wx)


def _gradients(
    out: Tensor,
    plan: str,
    u: Tensor | None,
    bias: Tensor | None,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    want_wx: bool,
) -> list[Tensor]:
    optional = [out.new_empty(0 if t is None else t.shape) for t in (u, bias, own)]
    shape = (len(out), state.shape[1], GATES[Plan.decode(plan).cell], state.shape[-1])
    return [
        out.new_empty(shape if want_wx else 0),
        *optional,
        state.new_empty(state.shape),
        *(w.new_empty(w.shape) for w in weights),
    ]


class _Calling(threading.local):
    """Hands the definition of the layer being called to `_save`; operators take no python objects."""

    definition: Definition | None = None


_calling = _Calling()


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, u, bias, state, weights, own, mask, lengths, ctx.plan, ctx.reverse, _ = inputs
    ctx.set_materialize_grads(False)  # nobody differentiates the history: no zeros for it
    ctx.definition = _calling.definition
    out, _, gates, states = output
    optional = [u, bias, own, mask, lengths]
    ctx.present = [t is not None for t in optional]
    ctx.weights = len(weights)
    # Products that came ready-made are needed for further derivatives only: made again then, not kept.
    kept = x if u is not None else x.new_empty(0)
    ctx.save_for_backward(kept, out, gates, states, state, *weights, *(t for t in optional if t is not None))


def _differentiate(ctx: Any, d_out: Tensor | None, d_last: Tensor | None, *_: Tensor | None) -> tuple[Any, ...]:
    x, out, gates, states, state, *rest = ctx.saved_tensors
    weights, others = rest[: ctx.weights], iter(rest[ctx.weights :])
    u, bias, own, mask, lengths = (next(others) if present else None for present in ctx.present)
    d_out = torch.zeros_like(out) if d_out is None else d_out
    d_last = torch.zeros_like(state) if d_last is None else d_last
    if ctx.definition is not None and (torch.is_grad_enabled() or transformed(d_out, d_last)):
        inputs = [x, u, bias, state, own, *weights]
        d = _differentiate_again(ctx, inputs, mask, lengths, d_out, d_last)
        return d[0], d[1], d[2], d[3], d[5:], d[4], None, None, None, None, None
    d_wx, d_u, d_bias, d_own, d_state, *d_weights = torch.ops.slimrnn.scan_backward(
        *(d_out, d_last, out, gates, states, x, u, bias, state, weights, own, mask, lengths),
        *(ctx.plan, ctx.reverse, ctx.needs_input_grad[0]),
    )
    d_x = None
    if ctx.needs_input_grad[0]:
        d_x = d_wx if u is None else d_wx.flatten(2) @ u.flatten(0, 1)
    d_u, d_bias, d_own = (None if t is None else d for t, d in ((u, d_u), (bias, d_bias), (own, d_own)))
    return d_x, d_u, d_bias, d_state, d_weights, d_own, None, None, None, None, None


def _differentiate_again(
    ctx: Any, inputs: list[Tensor | None], mask: Tensor | None, lengths: Tensor | None, d_out: Tensor, d_last: Tensor
) -> list[Tensor | None]:
    """Gradients that can themselves be differentiated: by autograd through the reference scan."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        if inputs[1] is None:  # no u: the operator was given products
            inputs[0] = _pairs_flat(ctx.definition.products())
        out, last = ctx.definition.replay(*inputs[:5], inputs[5:], mask, lengths, ctx.reverse)
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    found = iter(torch.autograd.grad([out, last], wanted, [d_out, d_last], create_graph=again, allow_unused=True))
    return [next(found) if t is not None and t.requires_grad else None for t in inputs]


_scan.register_autograd(_differentiate, setup_context=_save)


# --- calls ----------------------------------------------------------------------------------------------------------


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
        self.terms = [_Term(term, gates, size, self.plan.complex, d) for term, d in terms]
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


class _Term:
    """A filled-in slimrnn_term."""

    def __init__(self, term: NativeTerm, gates: int, size: int, pairs: bool, gradient: NativeTerm | None) -> None:
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
