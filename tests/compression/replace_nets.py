"""Nets with recurrent layers of torch's in all kinds of places."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

WIDTH = 4
KINDS: dict[str, tuple[type[nn.RNNBase], dict[str, Any]]] = {
    "tanh": (nn.RNN, {}),
    "relu": (nn.RNN, {"nonlinearity": "relu"}),
    "gru": (nn.GRU, {}),
    "lstm": (nn.LSTM, {}),
}


class Block(nn.Module):
    """A recurrent layer, and a linear one back to the width of the input; packed or not."""

    def __init__(self, rnn: nn.RNNBase, packed: bool) -> None:
        super().__init__()
        self.rnn, self.packed = rnn, packed
        self.out = nn.Linear(rnn.hidden_size * (1 + rnn.bidirectional), WIDTH, dtype=rnn.weight_ih_l0.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, I) to the same."""
        first: bool = self.rnn.batch_first
        x = x if first else x.transpose(0, 1)
        if self.packed:
            lengths = torch.tensor([3, 5, 2])
            self.rnn.flatten_parameters()
            given = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
            output, last = self.rnn(given)
            assert isinstance(output, PackedSequence)
            output, _ = pad_packed_sequence(output, batch_first=first, total_length=5)
        else:
            output, last = self.rnn(x)
        h_n = last[0] if self.rnn.mode == "LSTM" else last
        y: Tensor = self.out(output if first else output.transpose(0, 1)) + h_n.sum()
        return y


class Net(nn.Module):
    """Blocks in a list, a dictionary and a sequence, of which one is used twice."""

    def __init__(self, blocks: list[Block]) -> None:
        super().__init__()
        self.listed = nn.ModuleList(blocks[:1])
        self.named = nn.ModuleDict({f"block {k}": block for k, block in enumerate(blocks[1:])})
        self.sequence = nn.Sequential(nn.Sequential(blocks[0], nn.Tanh()), nn.Identity())
        self.shared = blocks[-1]

    def forward(self, x: Tensor) -> Tensor:
        for block in (*self.listed, *self.named.values(), self.sequence, self.shared):
            x = x + block(x)
        return x


@st.composite
def nets(draw: st.DrawFn, dtype: torch.dtype) -> Net:
    """Of one to three different layers, drawn."""
    torch.manual_seed(draw(st.integers(0, 999)))
    blocks = []
    for _ in range(draw(st.integers(1, 3))):
        torch_type, own = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        layers = draw(st.integers(1, 2))
        flags = {name: draw(st.booleans()) for name in ("bidirectional", "batch_first", "bias")}
        dropout = draw(st.sampled_from([0.0, 0.5])) if layers > 1 else 0.0
        make: Any = torch_type
        rnn = make(WIDTH, draw(st.integers(1, 6)), layers, dropout=dropout, dtype=dtype, **flags, **own)
        blocks.append(Block(rnn, packed=draw(st.booleans())))
    return Net(blocks)


def inputs(dtype: torch.dtype) -> Tensor:
    """The same each time."""
    return torch.randn(3, 5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)
