"""Elman's cell with a perceptron between h_{t−1} and h_t, and a path past it."""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn._checks import check_choice, check_count
from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.elman import NONLINEARITIES


class DeepTransitionRNNCell(Cell):
    """z_1 = f(U x_t + W_1 h_{t−1} + b_1);
    z_k = f(W_k z_{k−1} + b_k) for k = 2, ..., depth − 1;
    h_t = f(W_depth z_{depth−1} + S h_{t−1} + b_depth).

    Lecture, figure 18 c (Pascanu et al. 2014): S, a matrix of the same structure, leads past the depth, so that the
    shortest path from h_{t−1} to h_t has one matrix. Without S it is `RNN(transition_depth=depth)`. f is tanh, relu or
    identity."""

    gates = ("h",)
    deeper_bias: Tensor | None

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        depth: int = 2,
        nonlinearity: str = "tanh",
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        check_count("depth", depth)
        if depth < 2:
            raise ValueError(f"expected depth of at least 2, got {depth}: for a single matrix take RNN")
        check_choice("nonlinearity", nonlinearity, list(NONLINEARITIES))
        super().__init__(hidden_size, bias, dtype=dtype, device=device)
        self.depth, self.nonlinearity = depth, nonlinearity
        self.matrices = depth + 1  # W_1, ..., W_depth and S
        self.register_parameter("deeper_bias", self._zeros(depth - 1, dtype=dtype, device=device) if bias else None)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        f, last, bias = NONLINEARITIES[self.nonlinearity], self.depth - 1, self.deeper_bias
        past = matvec(h, slice(self.depth, self.depth + 1)).squeeze(-2)
        z = f(wx_BGH.squeeze(-2) + matvec(h, slice(0, 1)).squeeze(-2))
        for k in range(1, self.depth):
            z = matvec(z, slice(k, k + 1)).squeeze(-2)
            z = z if bias is None else z + bias[k - 1]
            z = f(z + past if k == last else z)
        return (z,)

    def extra_repr(self) -> str:
        return f"{self.hidden_size}, depth={self.depth}, nonlinearity={self.nonlinearity!r}"
