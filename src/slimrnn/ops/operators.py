"""The native scan as registered torch operators, and how it is differentiated.

`slimrnn::scan` runs a cell over a sequence, `slimrnn::scan_backward` carries the state's gradient back and sums those
of the parameters on the way.

Shape suffixes: T time, B batch, G gates, W real numbers of a state vector, S states.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from slimrnn._fields import pairs_flat
from slimrnn.ops.calls import SINGLE, Call, Inputs, with_tensors
from slimrnn.ops.terms import Plan

FUNCTORCH: Any = torch._C._functorch
Results = tuple[Tensor, Tensor, Tensor, Tensor]
OPTIONAL = ("u", "bias", "own", "mask", "lengths", "seed", "tokens", "resets", "reset_state")  # of the inputs

# The fields of Inputs, the plan as text.
SCHEMA = (
    "Tensor x, Tensor? u, Tensor? bias, Tensor state, Tensor? own, Tensor? mask, Tensor? lengths, Tensor? seed, "
    "Tensor? tokens, Tensor? resets, Tensor? reset_state, Tensor[] weights, str plan, bool reverse, int first_step"
)


class Definition(NamedTuple):
    """The layer in plain torch, for derivatives that the native core does not have."""

    replay: Callable[[Inputs], tuple[Tensor, Tensor]]  # the reference scan on the operator's tensors
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


# --- forward and backward --------------------------------------------------------------------------------------------


def run_forward(inputs: Inputs, keep: bool) -> Results:
    """-> out (T, B, W), last (S, B, W), and what backward needs, or nothing: slots (T, B, K, W) and the other states
    (S-1, T, B, W)."""
    out, last, gates, states = _results(inputs, keep)
    call = Call(inputs, len(out), out=out, last=last, gate_history=_or_none(gates), state_history=_or_none(states))
    call.run("slimrnn_forward")
    return out, last, gates, states


def run_backward(
    d_out: Tensor | None, d_last: Tensor, out: Tensor, gates: Tensor, states: Tensor, inputs: Inputs, want_wx: bool
) -> list[Tensor]:
    """-> gradients of U x + b (as x; empty unless wanted), u, bias, own, reset_state (empty where None), state,
    weights..."""
    found = _gradients(out, inputs, want_wx)
    d_wx, d_u, d_bias, d_own, d_reset, d_state, *d_weights = found
    for sums in (d_u, d_bias, d_own, d_reset, *d_weights, *([] if inputs.tokens is None else [d_wx])):
        sums.zero_()
    given = {"d_out": d_out, "d_last": d_last, "out": out}
    history = {"gate_history": _or_none(gates), "state_history": _or_none(states)}
    summed = {"d_wx": _or_none(d_wx), "d_u": _or_none(d_u), "d_bias": _or_none(d_bias), "d_own": _or_none(d_own)}
    summed["d_reset_state"] = _or_none(d_reset)
    Call(inputs, len(out), d_weights, **given, **history, **summed, d_state=d_state).run("slimrnn_backward")
    return found


def _or_none(tensor: Tensor) -> Tensor | None:
    return tensor if tensor.numel() else None


def _results(inputs: Inputs, keep: bool) -> Results:
    x, (count, batch, width) = inputs.x, inputs.state.shape
    history, cell = (inputs.time, batch), inputs.plan.cell
    gates = x.new_empty((*history, cell.slots, width) if keep and cell.kept else (0,))
    states = x.new_empty((count - 1, *history, width) if keep and count > 1 else (0,))
    return x.new_empty(*history, width), x.new_empty(count, batch, width), gates, states


def _gradients(out: Tensor, inputs: Inputs, want_wx: bool) -> list[Tensor]:
    state = inputs.state
    rows = (out.shape[0], state.shape[1]) if inputs.tokens is None else (inputs.x.shape[0],)
    d_wx = out.new_empty((*rows, inputs.plan.cell.gates, state.shape[-1]) if want_wx else 0)
    given = (inputs.u, inputs.bias, inputs.own, inputs.reset_state)
    optional = [out.new_empty(0 if t is None else t.shape) for t in given]
    return [d_wx, *optional, state.new_empty(state.shape), *(w.new_empty(w.shape) for w in inputs.weights)]


# --- the operators ---------------------------------------------------------------------------------------------------


def _inputs(arguments: tuple[Any, ...]) -> Inputs:
    *tensors, weights, plan, reverse, first_step = arguments
    return with_tensors([*tensors, *weights], Plan.decode(plan), reverse, first_step)


def as_arguments(inputs: Inputs) -> tuple[Any, ...]:
    """As the operators take them."""
    return *inputs[: SINGLE + 1], inputs.plan.encode(), inputs.reverse, inputs.first_step


def _scan(*arguments: Any) -> Results:
    return run_forward(_inputs(arguments[:-1]), arguments[-1])


def _fake_scan(*arguments: Any) -> Results:
    return _results(_inputs(arguments[:-1]), arguments[-1])


def _scan_backward(*arguments: Any) -> list[Tensor]:
    d_out, d_last, out, gates, states, *inputs, want_wx = arguments
    return run_backward(d_out, d_last, out, gates, states, _inputs(tuple(inputs)), want_wx)


def _fake_scan_backward(*arguments: Any) -> list[Tensor]:
    return _gradients(arguments[2], _inputs(arguments[5:-1]), arguments[-1])


def _register(name: str, schema: str, function: Callable[..., Any], fake: Callable[..., Any]) -> Any:
    operator: Any = torch.library.custom_op(f"slimrnn::{name}", function, mutates_args=(), schema=schema)
    operator.register_fake(fake)
    return operator


scan = _register("scan", f"({SCHEMA}, bool keep) -> (Tensor, Tensor, Tensor, Tensor)", _scan, _fake_scan)
scan_backward = _register(
    "scan_backward",
    f"(Tensor? d_out, Tensor d_last, Tensor out, Tensor gates, Tensor states, {SCHEMA}, bool want_wx) -> Tensor[]",
    _scan_backward,
    _fake_scan_backward,
)


# --- derivatives -----------------------------------------------------------------------------------------------------


def save(ctx: Any, inputs: Inputs, output: Results, definition: Definition | None) -> None:
    """Keep what `differentiate` needs."""
    ctx.set_materialize_grads(False)  # nobody differentiates the history: no zeros for it
    ctx.definition = definition
    ctx.scalars = {"plan": inputs.plan, "reverse": inputs.reverse, "first_step": inputs.first_step}
    out, _, gates, states = output
    optional = [getattr(inputs, name) for name in OPTIONAL]
    ctx.present = [t is not None for t in optional]
    # Products that came ready-made are needed for further derivatives only: made again then, not kept.
    kept = inputs.x if inputs.u is not None or inputs.tokens is not None else inputs.x.new_empty(0)
    present = [t for t in optional if t is not None]
    ctx.save_for_backward(out, gates, states, kept, inputs.state, *present, *inputs.weights)


def differentiate(
    ctx: Any, backward: Callable[..., list[Tensor]], d_out: Tensor | None, d_last: Tensor | None, want_x: bool
) -> tuple[Tensor | None, ...]:
    """Gradients of the tensors of Inputs, the weights last; `backward` is run_backward or its operator."""
    out, gates, states, x, state, *rest = ctx.saved_tensors
    optional: dict[str, Any] = {
        name: rest.pop(0) if present else None for name, present in zip(OPTIONAL, ctx.present, strict=True)
    }
    inputs = Inputs(x=x, state=state, weights=rest, **optional, **ctx.scalars)
    d_last = torch.zeros_like(state) if d_last is None else d_last
    given = [d_last] if d_out is None else [d_out, d_last]
    if ctx.definition is not None and (torch.is_grad_enabled() or transformed(*given)):
        d_out = torch.zeros_like(out) if d_out is None else d_out
        return _differentiate_again(ctx.definition, inputs, d_out, d_last)
    d_wx, d_u, d_bias, d_own, d_reset, d_state, *d_weights = backward(d_out, d_last, out, gates, states, inputs, want_x)
    found: dict[str, Tensor | None] = {"state": d_state}
    if want_x:
        with torch.autocast(d_wx.device.type, enabled=False):  # as forward: backward may be called inside of one
            found["x"] = d_wx if inputs.u is None else d_wx.flatten(2) @ inputs.u.flatten(0, 1)
    for name, gradient in (("u", d_u), ("bias", d_bias), ("own", d_own), ("reset_state", d_reset)):
        found[name] = None if optional[name] is None else gradient
    return *(found.get(name) for name in Inputs._fields[:SINGLE]), *d_weights


def _differentiate_again(
    definition: Definition, inputs: Inputs, d_out: Tensor, d_last: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients that can themselves be differentiated: by autograd through the reference scan."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        if inputs.u is None and definition.products is not None:
            inputs = inputs._replace(x=pairs_flat(definition.products()))
        # As views of their own: one may have come of another, and what goes back from here is each one's direct share.
        tensors: Any = (*inputs[:SINGLE], *inputs.weights)
        flat: list[Any] = [None if t is None else t.view_as(t) for t in tensors]
        out, last = definition.replay(with_tensors(flat, inputs.plan, inputs.reverse, inputs.first_step))
    wanted = [t for t in flat if t is not None and t.requires_grad]
    found = iter(torch.autograd.grad([out, last], wanted, [d_out, d_last], create_graph=again, allow_unused=True))
    return tuple(next(found) if t is not None and t.requires_grad else None for t in flat)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Results) -> None:
    save(ctx, _inputs(inputs[:-1]), output, calling.definition)


def _differentiate(ctx: Any, d_out: Tensor | None, d_last: Tensor | None, *_: Tensor | None) -> tuple[Any, ...]:
    def backward(*arguments: Any) -> list[Tensor]:
        *others, inputs, want_wx = arguments
        found: list[Tensor] = torch.ops.slimrnn.scan_backward(*others, *as_arguments(inputs), want_wx)
        return found

    gradients = differentiate(ctx, backward, d_out, d_last, ctx.needs_input_grad[0])
    return *gradients[:SINGLE], list(gradients[SINGLE:]), None, None, None, None


scan.register_autograd(_differentiate, setup_context=_save)


def _refuse(*_: Any) -> Any:
    """Of what has been compiled or exported, the layer in plain torch is not at hand."""
    raise RuntimeError(
        "expected first derivatives of a layer under torch.compile, got a second one, which the native core does not "
        "have: call the layer without torch.compile, or set backend='reference'"
    )


scan_backward.register_autograd(_refuse)
