"""The contract of a cell: a pointwise update that asks for the recurrent products it needs.

Shape suffixes: B batch, G gates, H hidden units. Gates are in torch's order.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from slimrnn._checks import check_count
from slimrnn.ops.reference import State as State


class Matvec(Protocol):
    """h -> W_g h for the chosen gates: (B, H) -> (B, G, H)."""

    def __call__(self, h: Tensor, gates: slice = ..., /) -> Tensor: ...


class Cell(nn.Module):
    """state_t = step(U x_t + b, h ↦ W h, state_{t−1}).

    A subclass states its numbers of gates and states and defines `step`; it registers whatever parameters act
    unit by unit. `bias` (G, H), where present, is added to the input product before the time loop."""

    gates: ClassVar[int]
    states: ClassVar[int] = 1
    bias: Tensor | None

    def __init__(self, hidden_size: int, *, complex: bool = False) -> None:
        super().__init__()
        check_count("hidden_size", hidden_size)
        self.hidden_size = hidden_size
        self.complex = complex

    def input_bias(self) -> Tensor | None:
        """What is added to the input product of every step, (G, H)."""
        return self.bias

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State, own: Tensor | None = None) -> State:
        """One time step; wx is U x_t + b. `own` stands in for `native_parameters()`."""
        raise NotImplementedError(f"{type(self).__name__} does not define step")

    @property
    def native_name(self) -> str | None:
        """The cell's name in the native core, or None: then the reference scan runs."""
        return None

    def native_parameters(self) -> Tensor | None:
        """The parameters that act within the step, as the native core takes them."""
        return None

    def _zeros(self, *sizes: int, dtype: torch.dtype | None, device: torch.device | str | None) -> nn.Parameter:
        return nn.Parameter(torch.zeros(*sizes, self.hidden_size, dtype=dtype, device=device))
