"""The minimal gated unit: a GRU with one gate."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias, of_writing_gate


class MGUCell(Cell):
    """f = σ(U_f x_t + W_f h_{t−1} + b_f);   n = tanh(U_n x_t + W_n (f ⊙ h_{t−1}) + b_n);
    h_t = (1 − f) ⊙ h_{t−1} + f ⊙ n.

    Zhou, Wu, Zhang & Zhou 2016, "Minimal gated unit for recurrent neural networks", section 3. A gate near zero carries
    the state: a long memory wants a negative `forget_bias`, the initial bias of f. Biases start at zero."""

    gates = ("f", "n")

    def __init__(self, hidden_size: int, bias: bool = True, *, forget_bias: GateBias = 0.0, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.start_bias("f", "forget_bias", of_writing_gate(forget_bias))

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        x_f, x_n = wx_BGH.unbind(-2)
        f = torch.sigmoid(x_f + matvec(h, slice(0, 1)).squeeze(-2))
        n = torch.tanh(x_n + matvec(f * h, slice(1, 2)).squeeze(-2))
        return (h + f * (n - h),)
