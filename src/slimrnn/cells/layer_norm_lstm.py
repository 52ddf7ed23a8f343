"""An LSTM with layer normalisation inside the step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias, oppose


class LayerNormLSTMCell(Cell):
    """i, f, g, o = α_x ⊙ N(U x_t) + α_h ⊙ N(W h_{t−1}) + b;   N(v) = (v − mean v) / √(var v + 10⁻⁵);
    c_t = σ(f) ⊙ c_{t−1} + σ(i) ⊙ tanh(g);   h_t = σ(o) ⊙ tanh(α_c ⊙ N(c_t) + b_c).

    Ba, Kiros & Hinton 2016, "Layer normalization", supplementary material. Mean and variance are over the units of each
    gate, not over those of all four at once; the paper's shifts of the first two N and b only matter as a sum, which is
    b. Gains start at one, biases at zero; `forget_bias` is the initial bias of f."""

    gates = ("i", "f", "g", "o")
    states = 2  # h, c
    state_bias: Tensor | None

    def __init__(self, hidden_size: int, bias: bool = True, *, forget_bias: GateBias = 0.0, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.input_gain = nn.Parameter(torch.ones(4, hidden_size, **place))
        self.recurrent_gain = nn.Parameter(torch.ones(4, hidden_size, **place))
        self.state_gain = nn.Parameter(torch.ones(hidden_size, **place))
        self.register_parameter("state_bias", nn.Parameter(torch.zeros(hidden_size, **place)) if bias else None)
        self.start_bias("f", "forget_bias", forget_bias)
        oppose(self.bias, forget_bias, keeping=1, writing=0)

    def input_bias(self) -> Tensor | None:
        return None  # it comes after the normalisation

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        h, c = state
        units = (self.hidden_size,)
        normed = self.input_gain * functional.layer_norm(wx_BGH, units)
        normed = normed + self.recurrent_gain * functional.layer_norm(matvec(h), units)
        i, f, g, o = (normed if self.bias is None else normed + self.bias).unbind(-2)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        inner = self.state_gain * functional.layer_norm(c, units)
        inner = inner if self.state_bias is None else inner + self.state_bias
        return torch.sigmoid(o) * torch.tanh(inner), c
