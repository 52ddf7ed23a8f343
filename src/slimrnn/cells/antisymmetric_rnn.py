"""AntisymmetricRNN: one Euler step of a differential equation that neither explodes nor decays."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.checks import check_not_negative, check_positive


class AntisymmetricRNNCell(Cell):
    """h_t = h_{t−1} + ε tanh(U x_t + W h_{t−1} − γ h_{t−1} + b),   W = M − Mᵀ.

    Chang, Chen, Haber & Chi 2019, "AntisymmetricRNN: a dynamical system view on recurrent neural networks", section 3.
    W is antisymmetric by its structure, `Antisymmetric(0.0)`; with any other one this is a residual RNN. `epsilon` is
    the step, `gamma` the diffusion; both are 0.01 unless given. Biases start at zero."""

    gates = ("h",)

    def __init__(
        self, hidden_size: int, bias: bool = True, *, epsilon: float = 0.01, gamma: float = 0.01, **place: Any
    ) -> None:
        check_positive("epsilon", epsilon)
        check_not_negative("gamma", gamma)
        super().__init__(hidden_size, bias, **place)
        self.epsilon, self.gamma = float(epsilon), float(gamma)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        return (h + self.epsilon * torch.tanh((wx_BGH + matvec(h)).squeeze(-2) - self.gamma * h),)
