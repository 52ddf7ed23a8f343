"""‖∂loss_T/∂x_t‖ and ‖∂o_T/∂x_t‖ of recurrent layers by vector-Jacobian products.

Shape suffixes: T time, B batch, I input width, O output width, V vectors that are carried back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from slimrnn.analysis.gradients._probes import (
    ROWS,
    NormTable,
    brought_back,
    carried_back,
    check_lags,
    reach_of,
    segment_length,
    states_between,
    vectors_for,
)
from slimrnn.analysis.gradients.reach import Reach
from slimrnn.analysis.model.layers import LayerView, frozen, in_steps, in_vectors
from slimrnn.layers import RecurrentStack
from slimrnn.layers.inputs import check_lengths
from slimrnn.layers.stack import States

Run = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, tuple[Tensor, ...]]]  # states are (L, B, S)


class Piece(NamedTuple):
    """Sequences of one length, and what the forward pass has kept of them."""

    segments: Sequence[Tensor]
    states: Sequence[tuple[Tensor, ...]]  # before each segment
    last_BO: Tensor


def input_reach(
    layers: nn.Module | LayerView,
    x: Tensor,
    hx: States | None = None,
    *,
    loss: Callable[[Tensor], Tensor] | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    lags: int | None = None,
    probes: int | None = None,
    spectral: bool = True,
    seed: int = 0,
) -> Reach:
    """‖∂loss/∂x_t‖, where the loss is a function of the last output o_T, for t = T, T − 1, ..., T − lags (by default to
    the first input); without a loss ‖∂o_T/∂x_t‖.

    layers -- an RNN, GRU or LSTM of slimrnn or torch.nn in one direction, all layers together; or a LayerView, which is
    one layer in one direction (x is then still what its stack reads, and the gradient that of what the layer reads);
    loss -- takes the last outputs (B, O) of the sequences and gives their losses (B) or the sum of these;
    probes, spectral, seed -- as in `state_reach`.

    In float64 (only the loss is computed in the layers' own precision), without dropout. The sequence is cut into
    segments, which are run again one by one on the way back, so that the memory does not grow with T beyond the states
    between segments and the result."""
    name, run, x_TBI, start, ragged, dtype = _prepared(layers, x, hx, lengths)
    longest = check_lags(lags, (len(x_TBI) if ragged is None else int(ragged.max())) - 1, probes)
    pieces = list(_forward(run, x_TBI, start, ragged, 1 if loss is not None else probes))
    last_BO = torch.cat([piece.last_BO for piece in pieces])
    seeds_VBO = _seeds(last_BO, loss, probes, seed, dtype)
    tables, first = [], 0
    for piece in pieces:
        rows = slice(first, first + len(piece.last_BO))
        first = rows.stop
        tables.append(NormTable(longest + 1, len(piece.last_BO), probes is None or loss is not None, spectral))
        _backward(run, piece, seeds_VBO[:, rows], tables[-1])
    return reach_of(name, "∂o_T/∂x_t" if loss is None else "∂loss/∂x_t", tables, probes)


def _prepared(
    layers: nn.Module | LayerView, x: Tensor, hx: States | None, lengths: Tensor | Sequence[int] | None
) -> tuple[str, Run, Tensor, tuple[Tensor, ...], Tensor | None, torch.dtype]:
    if isinstance(layers, LayerView):
        x_TBI, state, ragged = layers.reads(x, hx, lengths)
        core, dtype = frozen(layers.core), next(layers.core.parameters()).dtype

        def run_core(x_TBI: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
            output, last = core(x_TBI, tuple(part.squeeze(0) for part in states))
            return output, tuple(part.unsqueeze(0) for part in last)

        return layers.name, run_core, x_TBI, tuple(part.unsqueeze(0) for part in state), ragged, dtype
    if not isinstance(layers, RecurrentStack | nn.RNN | nn.GRU | nn.LSTM):
        got = f"{type(layers).__module__}.{type(layers).__qualname__}"
        raise TypeError(f"expected an RNN, GRU or LSTM of slimrnn or torch.nn, or a LayerView, got {got}")
    if layers.bidirectional:
        raise ValueError("expected layers of one direction, got two: give each of find_layers(...) for itself")
    if isinstance(layers, RecurrentStack):
        x = in_vectors(layers, x, lengths)
    x_TBI = in_steps(x, layers.input_size, layers.batch_first)
    batch = x_TBI.shape[1]
    ragged = None if lengths is None else check_lengths(lengths, len(x_TBI), batch, x_TBI.device)
    stack = frozen(layers)
    stack.batch_first = False

    def run(x_TBI: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        output, last = stack(x_TBI, states if len(states) > 1 else states[0])
        return output, (last,) if isinstance(last, Tensor) else last

    given = hx if hx is not None else _initial_state(stack, batch)
    parts = tuple(part.detach() for part in ((given,) if isinstance(given, Tensor) else given))
    parts = tuple(part.to(torch.complex128 if part.is_complex() else torch.float64) for part in parts)
    parts = tuple(part.unsqueeze(1) if part.dim() == 2 else part for part in parts)
    return type(layers).__name__, run, x_TBI, parts, ragged, next(layers.parameters()).dtype


def _initial_state(stack: nn.Module, batch: int) -> States:
    if isinstance(stack, RecurrentStack):
        return stack.initial_state(batch)
    assert isinstance(stack, nn.RNNBase)
    like = next(stack.parameters())
    h = like.new_zeros(stack.num_layers, batch, stack.proj_size or stack.hidden_size)
    return (h, like.new_zeros(stack.num_layers, batch, stack.hidden_size)) if isinstance(stack, nn.LSTM) else h


@torch.no_grad()
def _forward(
    run: Run, x_TBI: Tensor, start: tuple[Tensor, ...], lengths_B: Tensor | None, vectors: int | None
) -> Iterator[Piece]:
    """Some sequences at a time, in segments so short that all vectors can be carried back through one."""
    time, batch = x_TBI.shape[:2]
    output, _ = run(x_TBI[:1], start)
    count = output.shape[-1] if vectors is None else vectors
    width = sum(part.shape[0] * part.shape[-1] for part in start) + output.shape[-1] + x_TBI.shape[-1]
    at_once = 1 if lengths_B is not None else max(1, min(batch, ROWS // count))
    length = segment_length(time, count * at_once, 4 * width)
    for first in range(0, batch, at_once):
        rows = slice(first, first + at_once)
        steps = time if lengths_B is None else int(lengths_B[first])
        segments = x_TBI[:steps, rows].split(length)
        states, output = states_between(run, segments, tuple(part[:, rows] for part in start))
        yield Piece(segments, states, output[-1])


def _seeds(
    last_BO: Tensor, loss: Callable[[Tensor], Tensor] | None, probes: int | None, seed: int, dtype: torch.dtype
) -> Tensor:
    """(V, B, O): the loss's gradient, or unit vectors, or random signs."""
    batch, width = last_BO.shape
    if loss is None:
        everything = torch.ones(width, dtype=torch.bool, device=last_BO.device)
        return vectors_for(everything, probes, seed).unsqueeze(1).expand(-1, batch, -1)
    with torch.enable_grad():
        leaf = last_BO.clone().requires_grad_()
        value = loss(leaf.to(dtype))
        if not isinstance(value, Tensor) or tuple(value.shape) not in ((), (batch,)):
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"expected a loss of shape () or ({batch},), got {got}")
        if not value.requires_grad:
            raise ValueError("expected a loss that depends on the outputs, got a constant")
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return gradient.unsqueeze(0)


def _backward(run: Run, piece: Piece, seeds_VBO: Tensor, table: NormTable) -> None:
    """The table's norms, by segments from the last to the first."""
    count, batch = seeds_VBO.shape[:2]
    log_scale_B = torch.zeros(batch, dtype=torch.float64, device=seeds_VBO.device)
    carried: tuple[Tensor, ...] = ()
    for segment, before in zip(reversed(piece.segments), reversed(piece.states), strict=True):
        x = segment.repeat(1, count, 1).requires_grad_()
        states = tuple(part.repeat(1, count, 1).requires_grad_() for part in before)
        output, last = run(x, states)
        after = last if carried else (output[-1],)
        vectors = carried or (seeds_VBO.flatten(0, 1),)
        d_x, *d_states = carried_back(vectors, after, (x, *states))
        table.add(d_x.flip(0).unflatten(1, (count, batch)), log_scale_B)
        if table.full:
            break
        carried, log_scale_B = _scaled(d_states, count, log_scale_B)


def _scaled(d_states: Sequence[Tensor], count: int, log_scale_B: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """`brought_back` of gradients (L, V · B, S) of all parts of the state together."""
    parts = [part.unflatten(1, (count, -1)).movedim(0, 2) for part in d_states]  # (V, B, L, S)
    joined, log_scale_B = brought_back(torch.cat([part.flatten(2) for part in parts], -1), log_scale_B)
    shapes = [part.shape[2:] for part in parts]
    pieces = zip(joined.split([shape.numel() for shape in shapes], -1), shapes, strict=True)
    return tuple(piece.unflatten(-1, shape).movedim(2, 0).flatten(1, 2) for piece, shape in pieces), log_scale_B
