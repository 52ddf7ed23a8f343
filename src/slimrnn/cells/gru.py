"""The gated recurrent unit, with the reset gate after (torch) or before (Cho et al.) the recurrent product."""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn._checks import check_choice
from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias


class GRUCell(Cell):
    """r, u = σ(U x_t + W h_{t−1} + b);   h_t = (1 − u) ⊙ n + u ⊙ h_{t−1}, where

        reset="after":  n = tanh(U_n x_t + b_n + r ⊙ (W_n h_{t−1} + b'))   torch; low-rank paper, eq. 7
        reset="before": n = tanh(U_n x_t + b_n + W_n (r ⊙ h_{t−1}))        low-rank paper, eq. 6

    A positive `update_bias`, the initial bias of u (see `gate_bias`), means "carry". (The factorized paper's eq. 12
    applies the reset gate to x; these are the standard forms.)"""

    gates = ("r", "u", "n")
    recurrent_bias: Tensor | None

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        reset: str = "after",
        update_bias: GateBias = 0.0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        check_choice("reset", reset, ["after", "before"])
        super().__init__(hidden_size, bias, dtype=dtype, device=device)
        self.reset = reset
        inner = self._zeros(dtype=dtype, device=device) if bias and reset == "after" else None
        self.register_parameter("recurrent_bias", inner)
        self.start_bias("u", "update_bias", update_bias)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        # Unbound, not sliced: inductor of torch 2.13 gets the gradients of the sliced form wrong.
        x_r, x_u, x_n = wx_BGH.unbind(-2)
        if self.reset == "after":
            w_r, w_u, w_n = matvec(h).unbind(-2)
            inner = self.recurrent_bias
            r, u = torch.sigmoid(x_r + w_r), torch.sigmoid(x_u + w_u)
            n = torch.tanh(x_n + r * (w_n if inner is None else w_n + inner))
        else:
            w_r, w_u = matvec(h, slice(0, 2)).unbind(-2)
            r, u = torch.sigmoid(x_r + w_r), torch.sigmoid(x_u + w_u)
            n = torch.tanh(x_n + matvec(r * h, slice(2, 3)).squeeze(-2))
        return (n + u * (h - n),)

    def extra_repr(self) -> str:
        return f"{self.hidden_size}, reset={self.reset!r}"
