"""A GRU with layer normalisation inside the step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias


class LayerNormGRUCell(Cell):
    """r, u = σ(α_x ⊙ N(U x_t) + α_h ⊙ N(W h_{t−1}) + b);   N(v) = (v − mean v) / √(var v + 10⁻⁵);
    n = tanh(α_x ⊙ N(U_n x_t) + b_n + r ⊙ (α_h ⊙ N(W_n h_{t−1}) + b'));   h_t = (1 − u) ⊙ n + u ⊙ h_{t−1}.

    Ba, Kiros & Hinton 2016, "Layer normalization", supplementary material. Mean and variance are over the units of each
    gate; u near one keeps the state, as in `GRU` (the paper's is 1 − u). Gains start at one, biases at zero;
    `update_bias` is the initial bias of u."""

    gates = ("r", "u", "n")
    recurrent_bias: Tensor | None

    def __init__(self, hidden_size: int, bias: bool = True, *, update_bias: GateBias = 0.0, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.input_gain = nn.Parameter(torch.ones(3, hidden_size, **place))
        self.recurrent_gain = nn.Parameter(torch.ones(3, hidden_size, **place))
        self.register_parameter("recurrent_bias", nn.Parameter(torch.zeros(hidden_size, **place)) if bias else None)
        self.start_bias("u", "update_bias", update_bias)

    def input_bias(self) -> Tensor | None:
        return None  # it comes after the normalisation

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        (h,) = state
        units = (self.hidden_size,)
        normed = self.input_gain * functional.layer_norm(wx_BGH, units)
        x_r, x_u, x_n = (normed if self.bias is None else normed + self.bias).unbind(-2)
        w_r, w_u, w_n = (self.recurrent_gain * functional.layer_norm(matvec(h), units)).unbind(-2)
        r, u = torch.sigmoid(x_r + w_r), torch.sigmoid(x_u + w_u)
        n = torch.tanh(x_n + r * (w_n if self.recurrent_bias is None else w_n + self.recurrent_bias))
        return (n + u * (h - n),)
