"""minLSTM: an LSTM whose gates and candidate see the input alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias, oppose


class MinLSTMCell(Cell):
    """f, i = σ(U x_t + b);   n = U_n x_t + b_n;   h_t = (f ⊙ h_{t−1} + i ⊙ n) / (f + i).

    Feng, Tung, Ahmed, Bengio & Hajimirsadeghi 2024, "Were RNNs all we needed?", section 3.2, with the normalised gates
    f / (f + i) and i / (f + i). No recurrent matrices: units see each other through the input matrices of the next
    layer, so it wants several. `forget_bias` is the initial bias of f, positive to carry the state. Biases start at
    zero."""

    gates = ("f", "i", "n")
    matrices = 0

    def __init__(self, hidden_size: int, bias: bool = True, *, forget_bias: GateBias = 0.0, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.start_bias("f", "forget_bias", forget_bias)
        oppose(self.bias, forget_bias, keeping=0, writing=1)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        f, i, n = wx_BGH.unbind(-2)
        share = torch.sigmoid(functional.logsigmoid(f) - functional.logsigmoid(i))  # σ(f)/(σ(f) + σ(i)), never 0/0
        return (n + share * (h - n),)
