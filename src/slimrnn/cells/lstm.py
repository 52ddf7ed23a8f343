"""The long short-term memory cell, with and without peepholes."""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias, oppose


class LSTMCell(Cell):
    """i, f, o = σ(·), g = tanh(·) of U x_t + W h_{t−1} + b;   c_t = f ⊙ c_{t−1} + i ⊙ g;   h_t = o ⊙ tanh(c_t).

    (The factorized paper's eq. 7 exchanges f and i; this is the standard form.) With `peephole`, i and f also see
    p ⊙ c_{t−1} and o sees p ⊙ c_t (Gers & Schmidhuber 2000). `forget_bias` is the initial bias of f."""

    gates = ("i", "f", "g", "o")
    states = 2  # h, c
    peephole: Tensor | None

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        peephole: bool = False,
        forget_bias: GateBias = 0.0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(hidden_size, bias, dtype=dtype, device=device)
        self.register_parameter("peephole", self._zeros(3, dtype=dtype, device=device) if peephole else None)
        self.start_bias("f", "forget_bias", forget_bias)
        oppose(self.bias, forget_bias, keeping=1, writing=0)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        h, c = state
        peephole = self.peephole
        i, f, g, o = (wx_BGH + matvec(h)).unbind(-2)
        if peephole is not None:
            i = i + peephole[0] * c
            f = f + peephole[1] * c
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        if peephole is not None:
            o = o + peephole[2] * c
        return torch.sigmoid(o) * torch.tanh(c), c

    def extra_repr(self) -> str:
        return f"{self.hidden_size}, peephole={self.peephole is not None}"
