"""Layers whose units see only themselves, with the initial recurrent weights of their papers."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from slimrnn.cells import UnICORNNCell
from slimrnn.layers.recurrent import CellLayer
from slimrnn.layers.rnn import RNN
from slimrnn.layers.stack import RecurrentStack
from slimrnn.structures import Diagonal


class IndRNN(RNN):
    """h_t = relu(U x_t + w ⊙ h_{t−1} + b): RNN × Diagonal, and nothing else.

    Li, Li, Cook, Zhu & Gao 2018, "Independently recurrent neural network (IndRNN)", eq. 2. Units meet in the input
    matrices of the next layer, so it wants several. `start` is the range in which w starts, uniformly; |w| ≤ 2^(1/T)
    keeps sequences of T steps from exploding. The other options are those of `RNN`."""

    defaults: ClassVar[dict[str, Any]] = {"structure": Diagonal()}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "relu",
        *others: Any,
        start: tuple[float, float] = (0.0, 1.0),
        **options: Any,
    ) -> None:
        given: Any = self.defaults | options
        super().__init__(input_size, hidden_size, num_layers, nonlinearity, *others, **given)
        start_diagonals(self, *start)


class UnICORNN(CellLayer):
    __doc__ = UnICORNNCell.__doc__ or ""

    cell_type = UnICORNNCell
    defaults: ClassVar[dict[str, Any]] = {"structure": Diagonal()}

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        start_diagonals(self, 0.0, 1.0)


@torch.no_grad()
def start_diagonals(stack: RecurrentStack, low: float, high: float) -> None:
    """Draw the recurrent weights of diagonal matrices uniformly."""
    for core in stack.cores:
        for map in core.maps:
            if type(map.spec) is Diagonal:  # others have a start of their own
                weight = map.tensor("diagonal")
                map.assign_("diagonal", torch.empty_like(weight).uniform_(low, high))
