"""FastGRNN: a gate and a candidate that share their matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._checks import check_number
from slimrnn.cells.base import Cell, Matvec, State


class FastGRNNCell(Cell):
    """v = U x_t + W h_{t−1};   z = σ(v + b_z);   n = tanh(v + b_n);
    h_t = (σ(ζ) (1 − z) + σ(ν)) ⊙ n + z ⊙ h_{t−1}.

    Kusupati et al. 2018, "FastGRNN: a fast, accurate, stable and tiny kilobyte sized gated recurrent neural network",
    section 3.2. One matrix for both, two biases, and two learned numbers that all units share: the paper's ζ and ν lie
    between 0 and 1, so here, as in the authors' code, through σ. As there, biases start at one, ζ at 1 and ν at −4."""

    gates = ("v",)
    gate_bias: Tensor | None
    candidate_bias: Tensor | None

    def __init__(
        self, hidden_size: int, bias: bool = True, *, zeta: float = 1.0, nu: float = -4.0, **place: Any
    ) -> None:
        check_number("zeta", zeta)
        check_number("nu", nu)
        super().__init__(hidden_size, False, **place)  # what the two share has none
        for name in ("gate_bias", "candidate_bias"):
            self.register_parameter(name, nn.Parameter(torch.ones(hidden_size, **place)) if bias else None)
        self.zeta = nn.Parameter(torch.full((1,), float(zeta), **place))
        self.nu = nn.Parameter(torch.full((1,), float(nu), **place))

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        v = (wx_BGH + matvec(h)).squeeze(-2)
        z = torch.sigmoid(v if self.gate_bias is None else v + self.gate_bias)
        n = torch.tanh(v if self.candidate_bias is None else v + self.candidate_bias)
        zeta, nu = torch.sigmoid(self.zeta), torch.sigmoid(self.nu)
        return ((zeta * (1 - z) + nu) * n + z * h,)
