"""The native scan as registered torch operators.

`slimrnn::scan` runs a cell over a sequence, `slimrnn::scan_backward` carries the state's gradient back and sums those
of the parameters on the way. Both see real tensors only: a complex one comes as pairs.

Shape suffixes: T time, B batch, G gates, W real numbers of a state vector, S states.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from slimrnn._fields import pairs_flat
from slimrnn.ops.calls import GATES, Call
from slimrnn.ops.terms import Plan

FUNCTORCH: Any = torch._C._functorch


class Definition(NamedTuple):
    """The layer in plain torch, for derivatives that the native core does not have."""

    replay: Callable[..., tuple[Tensor, Tensor]]  # the reference scan on the operator's tensors
    products: Callable[[], Tensor] | None  # U x + b again, where the operator was given that


class Calling(threading.local):
    """Hands the definition of the layer being called to `_save`; operators take no python objects."""

    definition: Definition | None = None


calling = Calling()


def traced() -> bool:
    """Whether torch.jit records what happens."""
    return not torch.compiler.is_compiling() and torch._C._is_tracing()


def transformed(*tensors: Tensor) -> bool:
    """Whether vmap, jvp or their kind is at work, which see through the reference scan only."""
    if FUNCTORCH.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
        return True
    return any(FUNCTORCH.is_legacy_batchedtensor(t) for t in tensors) if tensors else False  # is_grads_batched


def run_forward(
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
    out, last, gates, states = _results(x, u, state, plan, keep)
    call = Call(plan, x.shape[0], state, weights, own, mask, lengths, reverse)
    held = [None if t is None else t.contiguous() for t in (x, u, bias)]
    call.struct.input_size = 0 if u is None else u.shape[-1]
    call.point(x=held[0], u=held[1], bias=held[2], out=out, last=last, gate_history=gates if gates.numel() else None)
    call.point(state_history=states if states.numel() else None)
    call.run("slimrnn_forward")
    return out, last, gates, states


_scan = torch.library.custom_op("slimrnn::scan", run_forward, mutates_args=())


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
    return _results(x, u, state, plan, keep)


def _results(
    x: Tensor, u: Tensor | None, state: Tensor, plan: str, keep: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    time, (count, batch, width) = x.shape[0], state.shape
    gate_count = x.shape[2] if u is None else u.shape[0]
    out = x.new_empty(time, batch, width)
    gates = x.new_empty((time, batch, gate_count, width) if keep and gate_count > 1 else (0,))
    inner = count == 2 or Plan.decode(plan).leaky  # c, or what the cell gave before it leaked
    states = x.new_empty((time, batch, width) if keep and inner else (0,))
    return out, x.new_empty(count, batch, width), gates, states


def run_backward(
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


_scan_backward = torch.library.custom_op("slimrnn::scan_backward", run_backward, mutates_args=())


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


def save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...], definition: Definition | None) -> None:
    """Keep what `differentiate` needs, of the operator's inputs and outputs."""
    x, u, bias, state, weights, own, mask, lengths, ctx.plan, ctx.reverse, _ = inputs
    ctx.set_materialize_grads(False)  # nobody differentiates the history: no zeros for it
    ctx.definition = definition
    out, _, gates, states = output
    optional = [u, bias, own, mask, lengths]
    ctx.present = [t is not None for t in optional]
    ctx.weights = len(weights)
    # Products that came ready-made are needed for further derivatives only: made again then, not kept.
    kept = x if u is not None else x.new_empty(0)
    ctx.save_for_backward(kept, out, gates, states, state, *weights, *(t for t in optional if t is not None))


def differentiate(
    ctx: Any, backward: Callable[..., Any], d_out: Tensor | None, d_last: Tensor | None
) -> tuple[Any, ...]:
    """Gradients of the operator's inputs; `backward` is run_backward or its operator."""
    x, out, gates, states, state, *rest = ctx.saved_tensors
    weights, others = rest[: ctx.weights], iter(rest[ctx.weights :])
    u, bias, own, mask, lengths = (next(others) if present else None for present in ctx.present)
    d_out = torch.zeros_like(out) if d_out is None else d_out
    d_last = torch.zeros_like(state) if d_last is None else d_last
    if ctx.definition is not None and (torch.is_grad_enabled() or transformed(d_out, d_last)):
        inputs = [x, u, bias, state, own, *weights]
        d = _differentiate_again(ctx, inputs, mask, lengths, d_out, d_last)
        return d[0], d[1], d[2], d[3], d[5:], d[4], None, None, None, None, None
    d_wx, d_u, d_bias, d_own, d_state, *d_weights = backward(
        *(d_out, d_last, out, gates, states, x, u, bias, state, weights, own, mask, lengths),
        *(ctx.plan, ctx.reverse, ctx.needs_input_grad[0]),
    )
    d_x = None
    if ctx.needs_input_grad[0]:
        with torch.autocast(d_wx.device.type, enabled=False):  # as forward: backward may be called inside of one
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
            inputs[0] = pairs_flat(ctx.definition.products())
        # As views of their own: one may have come of another, and what goes back from here is each one's direct share.
        inputs = [None if t is None else t.view_as(t) for t in inputs]
        out, last = ctx.definition.replay(*inputs[:5], inputs[5:], mask, lengths, ctx.reverse)
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    found = iter(torch.autograd.grad([out, last], wanted, [d_out, d_last], create_graph=again, allow_unused=True))
    return [next(found) if t is not None and t.requires_grad else None for t in inputs]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    save(ctx, inputs, output, calling.definition)


def _differentiate(ctx: Any, d_out: Tensor | None, d_last: Tensor | None, *_: Tensor | None) -> tuple[Any, ...]:
    return differentiate(ctx, torch.ops.slimrnn.scan_backward, d_out, d_last)


_scan.register_autograd(_differentiate, setup_context=_save)
