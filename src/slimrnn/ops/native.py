"""The native scan as registered torch operators.

`slimrnn::scan` runs a cell over a sequence, `slimrnn::scan_backward` carries the state's gradient back and then sums the
gradients of the matrices over all steps at once. Both see real tensors only: a complex one comes as pairs.

Shape suffixes: T time, B batch, G gates, W real numbers of a state vector, S states.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from slimrnn.ops.library import ScanStruct, TermStruct, check, native_library
from slimrnn.ops.terms import NativeTerm, Plan

CELLS = ("tanh", "relu", "identity", "modrelu", "lstm", "gru_after", "gru_before")  # slimrnn_cell
DTYPES = {torch.float32: 0, torch.float64: 1}


def scan(
    cell: str,
    own: Tensor | None,
    terms: Sequence[NativeTerm],
    wx_TBGH: Tensor,
    state: tuple[Tensor, ...],
    mask_BH: Tensor | None = None,
    lengths_B: Tensor | None = None,
    reverse: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As the reference scan, for a cell named in CELLS with its own parameters and the terms of the recurrent map."""
    pairs = wx_TBGH.is_complex()
    plan = Plan(cell, pairs, tuple(term.plan for term in terms))
    weights = [_real(tensor) for term in terms for tensor in term.tensors]
    tensors = [wx_TBGH, *state, *weights, *([] if own is None else [own])]
    keep = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    if pairs:
        own = None if own is None else own.repeat_interleave(2, -1)
        mask_BH = None if mask_BH is None else mask_BH.repeat_interleave(2, -1)
    out, last, _, _ = torch.ops.slimrnn.scan(
        _pairs_flat(wx_TBGH),
        torch.stack([_pairs_flat(part) for part in state]),
        weights,
        own,
        mask_BH,
        lengths_B,
        plan.encode(),
        reverse,
        keep,
    )
    if pairs:
        out, last = (torch.view_as_complex(t.reshape(*t.shape[:-1], -1, 2)) for t in (out, last))
    return out, tuple(last.unbind(0))


def can_serve(wx: Tensor) -> bool:
    """Whether the native core can run on these inputs here and now."""
    if wx.device.type != "cpu" or wx.real.dtype not in DTYPES or not wx.numel():
        return False
    if torch.compiler.is_compiling():
        return True
    # vmap, jvp and their kind see through the reference scan only.
    transformed = torch._C._functorch.peek_interpreter_stack() is not None
    return not transformed and torch.autograd.forward_ad._current_level < 0


def _real(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _pairs_flat(t: Tensor) -> Tensor:
    return _real(t).flatten(-2) if t.is_complex() else t


# --- the operators --------------------------------------------------------------------------------------------------


@torch.library.custom_op("slimrnn::scan", mutates_args=())
def _scan(
    wx: Tensor,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """-> out (T, B, W), last (S, B, W), and what backward needs: gates (T, B, G, W), cells (T, B, W) or nothing."""
    out, last, gates, cells = _like(wx, state, keep)
    call = _Call(plan, wx, state, weights, own, mask, lengths, reverse)
    call.point(wx=call.wx, out=out, last=last, gate_history=gates if keep else None)
    call.point(cell_history=cells if keep and len(state) == 2 else None)
    call.run("slimrnn_forward")
    return out, last, gates, cells


@_scan.register_fake
def _(
    wx: Tensor,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _like(wx, state, keep)


def _like(wx: Tensor, state: Tensor, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    time, batch, _, width = wx.shape
    out = wx.new_empty(time, batch, width)
    gates = wx.new_empty(wx.shape if keep else (0,))
    cells = wx.new_empty((time, batch, width) if keep and state.shape[0] == 2 else (0,))
    return out, torch.empty_like(state, memory_format=torch.contiguous_format), gates, cells


@torch.library.custom_op("slimrnn::scan_backward", mutates_args=())
def _scan_backward(
    d_out: Tensor,
    d_last: Tensor,
    out: Tensor,
    gates: Tensor,
    cells: Tensor,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
) -> list[Tensor]:
    """-> d_wx, d_state, d_own (empty without own), d_weights..."""
    call = _Call(plan, gates, state, weights, own, mask, lengths, reverse)
    d_wx, d_state = torch.empty_like(gates), torch.empty_like(call.state)
    d_own = gates.new_zeros(call.struct.threads, *(() if own is None else own.shape))
    d_out, d_last = d_out.contiguous(), d_last.contiguous()
    call.point(out=out, gate_history=gates, cell_history=cells if len(state) == 2 else None)
    call.point(d_out=d_out, d_last=d_last, d_wx=d_wx, d_state=d_state, d_own=None if own is None else d_own)
    call.run("slimrnn_backward")
    d_weights = _weight_gradients(call, out, gates, d_wx)
    return [d_wx, d_state, gates.new_empty(0) if own is None else d_own.sum(0), *d_weights]


@_scan_backward.register_fake
def _(
    d_out: Tensor,
    d_last: Tensor,
    out: Tensor,
    gates: Tensor,
    cells: Tensor,
    state: Tensor,
    weights: Sequence[Tensor],
    own: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    plan: str,
    reverse: bool,
) -> list[Tensor]:
    d_own = gates.new_empty(0) if own is None else torch.empty_like(own, memory_format=torch.contiguous_format)
    plain = torch.contiguous_format
    like = [torch.empty_like(w, memory_format=plain) for w in weights]
    return [torch.empty_like(gates), torch.empty_like(state, memory_format=plain), d_own, *like]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, state, weights, own, mask, lengths, ctx.plan, ctx.reverse, _ = inputs
    out, _, gates, cells = output
    ctx.optional = [own, mask, lengths]
    ctx.save_for_backward(out, gates, cells, state, *weights, *(t for t in ctx.optional if t is not None))
    ctx.optional = [t is not None for t in ctx.optional]
    ctx.weights = len(weights)


def _differentiate(ctx: Any, d_out: Tensor, d_last: Tensor, *_: Tensor) -> tuple[Any, ...]:
    out, gates, cells, state, *rest = ctx.saved_tensors
    weights, others = rest[: ctx.weights], iter(rest[ctx.weights :])
    own, mask, lengths = (next(others) if present else None for present in ctx.optional)
    d_wx, d_state, d_own, *d_weights = torch.ops.slimrnn.scan_backward(
        d_out, d_last, out, gates, cells, state, weights, own, mask, lengths, ctx.plan, ctx.reverse
    )
    return d_wx, d_state, d_weights, None if own is None else d_own, None, None, None, None, None


_scan.register_autograd(_differentiate, setup_context=_save)


# --- calls ----------------------------------------------------------------------------------------------------------


class _Call:
    """A filled-in slimrnn_scan, and the tensors that its pointers need alive."""

    def __init__(
        self,
        plan: str,
        like: Tensor,
        state: Tensor,
        weights: Sequence[Tensor],
        own: Tensor | None,
        mask: Tensor | None,
        lengths: Tensor | None,
        reverse: bool,
    ) -> None:
        self.plan = Plan.decode(plan)
        self.time, self.batch, gates, width = like.shape
        self.wx, self.state = like.contiguous(), state.contiguous()
        self.mask = None if mask is None else mask.contiguous()
        self.lengths = None if lengths is None else lengths.to(torch.int64).contiguous()
        self.own = None if own is None else own.contiguous()
        self.reverse, self.dtype = reverse, DTYPES[like.dtype]
        self.weights = [w.contiguous() for w in weights]
        size = width // 2 if self.plan.complex else width
        self.terms = [_Term(t, gates, size, self.plan.complex) for t in self.plan.split(self.weights)]
        structs = (TermStruct * len(self.terms))(*(term.struct for term in self.terms))
        self.threads = min(torch.get_num_threads(), max(1, self.batch))
        self.struct = ScanStruct(
            dtype=self.dtype,
            cell=CELLS.index(self.plan.cell),
            is_complex=self.plan.complex,
            gates=gates,
            states=len(state),
            reverse=reverse,
            threads=self.threads,
            term_count=len(self.terms),
            time=self.time,
            batch=self.batch,
            width=width,
            terms=structs,
        )
        self.alive: list[Any] = [structs]
        self.point(state=self.state, own=self.own, mask=self.mask, lengths=self.lengths)

    def point(self, **tensors: Tensor | None) -> None:
        for name, tensor in tensors.items():
            setattr(self.struct, name, None if tensor is None else tensor.data_ptr())

    def run(self, function: str) -> None:
        check(getattr(native_library(), function)(ctypes.byref(self.struct)))


class _Term:
    """A filled-in slimrnn_term."""

    def __init__(self, term: NativeTerm, gates: int, size: int, pairs: bool) -> None:
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

    def collect(self) -> list[Tensor]:
        """Zeros for the gradients to be summed into."""
        self.sums = [torch.zeros_like(t) for t in self.tensors]
        self.targets = (ctypes.c_void_p * len(self.sums))(*(t.data_ptr() for t in self.sums))
        self.struct.gradient = self.targets
        return self.sums


def _weight_gradients(call: _Call, out: Tensor, gates: Tensor, d_wx: Tensor) -> list[Tensor]:
    """Σ over steps and sequences of the gradients of W, from the states before each step and the gates' gradients."""
    found = [tensor for term in call.terms for tensor in term.collect()]
    for before, gate, d in _steps(call, out, gates, d_wx):
        if call.mask is not None:
            before = before * call.mask.expand(before.shape[0] // call.batch, -1, -1).flatten(0, 1)
        for first, last, x, y in _products(call.plan.cell, before, gate, d):
            for term in call.terms:
                status = native_library().slimrnn_gradient(  # type: ignore[union-attr]
                    ctypes.byref(term.struct),
                    *(call.dtype, call.threads, x.shape[0]),
                    *(x.data_ptr(), x.stride(0), y.data_ptr(), y.stride(0)),
                    *(first, last),
                )
                check(status)
    return found


def _steps(call: _Call, out: Tensor, gates: Tensor, d_wx: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """(state before, gates, gradients), rows of all steps: those after another step, and the first ones."""
    later, earlier = slice(1, None), slice(None, -1)
    if not call.reverse:
        pieces = [(out[earlier], gates[later], d_wx[later]), (call.state[0], gates[:1], d_wx[:1])]
    elif call.lengths is None:
        pieces = [(out[later], gates[earlier], d_wx[earlier]), (call.state[0], gates[-1:], d_wx[-1:])]
    else:  # a sequence begins where it ends; beyond that the output is zero and adds nothing
        ends, columns = call.lengths - 1, torch.arange(call.batch)
        pieces = [(out[later], gates[earlier], d_wx[earlier]), (call.state[0], gates[ends, columns], d_wx[ends, columns])]
    width = out.shape[-1]
    rows = [(h.reshape(-1, width), g.reshape(-1, *g.shape[-2:]), d.reshape(-1, *d.shape[-2:])) for h, g, d in pieces]
    return [piece for piece in rows if len(piece[0])]


def _products(cell: str, before: Tensor, gates: Tensor, d: Tensor) -> list[tuple[int, int, Tensor, Tensor]]:
    """(first gate, last gate, x, y): the products W x of the cell, and the gradients y that they get."""
    if cell == "gru_after":  # the reset gate acts on the product
        return [(0, 2, before, d), (2, 3, before, d[:, 2] * gates[:, 0])]
    if cell == "gru_before":  # the reset gate acts on the state
        return [(0, 2, before, d), (2, 3, before * gates[:, 0], d[:, 2])]
    return [(0, d.shape[1], before, d)]
