"""sLSTM, the scalar memory of xLSTM: exponential gates, with a normaliser and a stabiliser."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from slimrnn._checks import check_choice
from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.cells.biases import GateBias, oppose


class SLSTMCell(Cell):
    """i, f, g, o = U x_t + W h_{t−1} + b;   l = log σ(f), or f where the forget gate is exponential;
    m_t = max(l + m_{t−1}, i), or i at the start;   i' = exp(i − m_t);   f' = exp(l + m_{t−1} − m_t);
    c_t = f' ⊙ c_{t−1} + i' ⊙ tanh(g);   n_t = f' ⊙ n_{t−1} + i';   h_t = σ(o) ⊙ c_t / n_t.

    Beck et al. 2024, "xLSTM: extended long short-term memory", eqs. 8–17; g is the paper's z. The stabiliser m changes
    no output, only the sizes of c and n. At the start n is zero and m is i, as in the authors' code. The paper's heads
    are `structure=BlockDiagonal(heads)`. `forget` is "sigmoid" or "exp", both the paper's; `forget_bias` is the initial
    bias of f. Biases start at zero."""

    gates = ("i", "f", "g", "o")
    states = 4  # h, c, n, m

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        forget: str = "sigmoid",
        forget_bias: GateBias = 0.0,
        **place: Any,
    ) -> None:
        check_choice("forget", forget, ["sigmoid", "exp"])
        super().__init__(hidden_size, bias, **place)
        self.forget = forget
        self.start_bias("f", "forget_bias", forget_bias)
        oppose(self.bias, forget_bias, keeping=1, writing=0)

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        h, c, n, m = state
        i, f, g, o = (wx_BGH + matvec(h)).unbind(-2)
        kept = m + (functional.logsigmoid(f) if self.forget == "sigmoid" else f)
        m = torch.where(n > 0, torch.maximum(kept, i), i)
        i, f = torch.exp(i - m), torch.exp(torch.clamp(kept - m, max=0.0))  # above 0 only at the start
        c, n = f * c + i * torch.tanh(g), f * n + i
        return torch.sigmoid(o) * c / n, c, n, m
