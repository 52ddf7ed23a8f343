"""The gates of the cells, for all steps at once: the state before each step is known.

Shape suffixes: T time, B batch, H hidden units. All other tensors lead with (T, B), too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from slimrnn.analysis.model.trajectory import Trajectory
from slimrnn.cells import ElmanCell, GRUCell, LSTMCell
from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.elman import modrelu
from slimrnn.cells.leaky import leaked


class Signal(NamedTuple):
    """`rest` is 1 − values, exact where values are close to 1."""

    name: str
    kind: str
    values: Tensor  # (T, B, H) float64
    rest: Tensor | None = None
    carries: bool = False


@torch.no_grad()
def signals_of(trajectory: Trajectory) -> list[tuple[int, Signal]]:
    """The gates of each transition: all steps at once, since the state before each is known."""
    core, found = trajectory.core, []
    wx = trajectory.products()
    state = trajectory.states_before(wx)
    alpha = None if core.leak is None else core.leak()
    for number, transition in enumerate(core.transitions):
        given, matvec = (transition.constant(wx) if number else wx), transition.matvec(None)
        found += [(number, s) for s in _leaky(_of_cell(transition.cell, given, matvec, state), alpha)]
        if number < len(core.transitions) - 1:
            state = leaked(alpha, state, transition.cell.step(given, matvec, state))
    return found


def _of_cell(cell: Cell, wx: Tensor, matvec: Matvec, state: State) -> Iterator[Signal]:
    if isinstance(cell, GRUCell):
        return _gru(cell, wx, matvec, *state)
    if isinstance(cell, LSTMCell):
        return _lstm(cell, wx, matvec, *state)
    if not isinstance(cell, ElmanCell):
        raise TypeError(f"expected the cell of an RNN, GRU or LSTM, whose gates are known, got {type(cell).__name__}")
    return _elman(cell, wx, matvec, *state)


def _gru(cell: GRUCell, wx: Tensor, matvec: Matvec, h: Tensor) -> Iterator[Signal]:
    x_r, x_u, x_n = wx.unbind(-2)
    w_r, w_u = matvec(h, slice(0, 2)).unbind(-2)
    yield _sigmoid("reset", x_r + w_r)
    yield _sigmoid("update", x_u + w_u, carries=True)
    r = torch.sigmoid(x_r + w_r)
    if cell.reset == "before":
        n = matvec(r * h, slice(2, 3)).squeeze(-2)
    else:
        n = matvec(h, slice(2, 3)).squeeze(-2)
        n = r * (n if cell.recurrent_bias is None else n + cell.recurrent_bias)
    yield Signal("candidate", "tanh", torch.tanh((x_n + n).double()))


def _lstm(cell: LSTMCell, wx: Tensor, matvec: Matvec, h: Tensor, c: Tensor) -> Iterator[Signal]:
    i, f, g, o = (wx + matvec(h)).unbind(-2)
    if cell.peephole is not None:
        i, f = i + cell.peephole[0] * c, f + cell.peephole[1] * c
        o = o + cell.peephole[2] * (torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g))
    yield _sigmoid("input", i)
    yield _sigmoid("forget", f, carries=True)
    yield Signal("candidate", "tanh", torch.tanh(g.double()))
    yield _sigmoid("output", o)


def _elman(cell: ElmanCell, wx: Tensor, matvec: Matvec, h: Tensor) -> Iterator[Signal]:
    z = (wx + matvec(h)).squeeze(-2)
    z = modrelu(z, None if cell.bias is None else cell.bias[0]) if cell.nonlinearity == "modrelu" else z
    z = z.abs() if z.is_complex() else z
    squash = {"tanh": torch.tanh, "relu": torch.relu}.get(cell.nonlinearity, torch.Tensor.double)
    yield Signal("hidden", cell.nonlinearity, squash(z.double()))


def _sigmoid(name: str, z: Tensor, carries: bool = False) -> Signal:
    z = z.double()
    return Signal(name, "sigmoid", torch.sigmoid(z), torch.sigmoid(-z), carries)


def _leaky(signals: Iterator[Signal], alpha_H: Tensor | None) -> Iterator[Signal]:
    """With a leak, h carries α of itself besides: in a GRU, α + (1 − α) u all in all."""
    carry = None
    for signal in signals:
        last = signal
        if alpha_H is not None and signal.name == "update":
            assert signal.rest is not None
            rest = (1 - alpha_H.double()) * signal.rest
            signal, carry = signal._replace(carries=False), Signal("carry", "fixed", 1 - rest, rest, True)
        yield signal
    if alpha_H is not None and carry is None:
        alpha = alpha_H.double().expand_as(last.values)
        carry = Signal("leak", "fixed", alpha, 1 - alpha, True)
    if carry is not None:
        yield carry
