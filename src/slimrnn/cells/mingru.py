"""minGRU: a GRU whose gate and candidate see the input alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias, of_writing_gate


class MinGRUCell(Cell):
    """z = σ(U_z x_t + b_z);   n = U_n x_t + b_n;   h_t = (1 − z) ⊙ h_{t−1} + z ⊙ n.

    Feng, Tung, Ahmed, Bengio & Hajimirsadeghi 2024, "Were RNNs all we needed?", section 3.1. No recurrent matrices:
    units see each other through the input matrices of the next layer, so it wants several. A gate near zero carries
    the state: a long memory wants a negative `update_bias`, the initial bias of z. Biases start at zero."""

    gates = ("z", "n")
    matrices = 0

    def __init__(self, hidden_size: int, bias: bool = True, *, update_bias: GateBias = 0.0, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.start_bias("z", "update_bias", of_writing_gate(update_bias))

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        z, n = wx_BGH.unbind(-2)
        return (h + torch.sigmoid(z) * (n - h),)
