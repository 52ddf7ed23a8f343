"""A cell with the map of its state: what the state passes through, once or several times in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.structures.base import ALL, Prepared, StructuredMap


class Transition(NamedTuple):
    """state ↦ cell(products, h ↦ W h, state)"""

    cell: Cell
    recurrent: StructuredMap

    def matvec(self, h_mask: Tensor | None) -> Matvec:
        """h ↦ W (mask ⊙ h)"""
        prepared = self.recurrent.prepare()

        def matvec(h: Tensor, gates: slice = ALL) -> Tensor:
            return self.recurrent.matvec(h if h_mask is None else h * h_mask, gates, prepared)

        return matvec

    def constant(self, like: Tensor) -> Tensor:
        """What stands in for U x + b where there is no input: the bias, in the shape of the products."""
        return constant(self.cell.input_bias(), like)

    def own_rows(self, alpha_1H: Tensor | None) -> Tensor | None:
        """Parameters that act within the step as the native core takes them, (rows, H), the leak in the last row."""
        own = self.cell.native_parameters()
        rows = [] if own is None else [own.reshape(-1, own.shape[-1])]
        rows += [] if alpha_1H is None else [alpha_1H]
        return torch.cat(rows) if rows else None

    def replayed(
        self, prepared: Prepared, own: Tensor | None, mask: Tensor | None, leaky: bool
    ) -> Callable[[Tensor, State], State]:
        """The step with the native operator's tensors: those of the map, and `own_rows`."""
        mine, alpha = self.cell.native_parameters(), None
        if own is not None and mine is not None:
            mine = own[: own.shape[0] - leaky].reshape(mine.shape)
        if own is not None and leaky:
            alpha = own[-1]

        def matvec(h: Tensor, gates: slice = ALL) -> Tensor:
            return self.recurrent.matvec(h if mask is None else h * mask, gates, prepared)

        def step(wx: Tensor, before: State) -> State:
            return leaked(alpha, before, self.cell.step(wx, matvec, before, mine))

        return step


def constant(bias_GH: Tensor | None, like: Tensor) -> Tensor:
    """The bias, or zeros, in the shape of the products."""
    return torch.zeros_like(like) if bias_GH is None else bias_GH.to(like.dtype).expand_as(like)


def leaked(alpha_H: Tensor | None, before: State, given: State) -> State:
    """h = α h_before + (1 − α) v; the LSTM's c does not leak."""
    if alpha_H is None:
        return given
    return given[0] + alpha_H * (before[0] - given[0]), *given[1:]
