"""A cell with the map of its state: what the state passes through, once or several times in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.structures.base import ALL, Prepared, StructuredMap
from slimrnn.tracing.trace import Noise, Trace, step_of


class Transition(NamedTuple):
    """state ↦ cell(products, h ↦ W h, state)"""

    cell: Cell
    recurrent: StructuredMap

    def matvec(self, h_mask: Tensor | None, prepared: Prepared | None = None) -> Matvec:
        """h ↦ W (mask ⊙ h)"""
        if prepared is None:
            prepared = self.recurrent.prepare()
        return lambda h, gates=ALL: masked_matvec(self.recurrent, h, h_mask, gates, prepared)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        """The cell's own step in plain torch."""
        after = self.cell.step(wx_BGH, matvec, state)
        if not isinstance(after, tuple) or len(after) != self.cell.states:
            name, got = type(self.cell).__name__, f"{len(after)} in a " if isinstance(after, tuple | list) else "a "
            wanted = f"a tuple of {self.cell.states} states from {name}.step, as {name}.states says"
            raise ValueError(f"expected {wanted}, got {got}{type(after).__name__}")
        return after

    def constant(self, like: Tensor) -> Tensor:
        """What stands in for U x + b where there is no input: the bias, in the shape of the products."""
        return constant(self.cell.input_bias(), like)

    def replayed(
        self, trace: Trace, prepared: Prepared, own_RH: Tensor | None, mask: Tensor | None
    ) -> Callable[[Tensor, State, Noise], State]:
        """The traced step with the native operator's tensors: those of the map, and the rows of own."""
        step, matvec = step_of(trace, self.cell.hidden_size), self.matvec(mask, prepared)
        return lambda wx, before, noise: step(wx, matvec, before, own_RH, noise)


def masked_matvec(
    map: StructuredMap, h: Tensor, h_mask: Tensor | None, gates: slice = ALL, prepared: Prepared | None = None
) -> Tensor:
    """W_g (mask ⊙ h), with one mask (B, H) for all gates or a mask (B, G, H) for each."""
    if h_mask is None or h_mask.dim() == 2:
        return map.matvec(h if h_mask is None else h * h_mask, gates, prepared)
    chosen = range(map.shape.gates)[gates]
    return torch.cat([map.matvec(h * h_mask[..., g, :], slice(g, g + 1), prepared) for g in chosen], -2)


def constant(bias_GH: Tensor | None, like: Tensor) -> Tensor:
    """The bias, or zeros, in the shape of the products."""
    return torch.zeros_like(like) if bias_GH is None else bias_GH.to(like.dtype).expand_as(like)
