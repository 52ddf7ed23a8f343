"""LSTM: long short-term memory with a recurrent matrix of any structure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from torch import nn

from slimrnn.cells import LSTMCell
from slimrnn.cells.biases import GateBias
from slimrnn.layers.options import StackOptions, suggests_options
from slimrnn.layers.stack import RecurrentStack

if TYPE_CHECKING:
    from typing_extensions import Unpack


class LSTM(RecurrentStack):
    """As torch.nn.LSTM, with a recurrent matrix of any structure.

    `peephole=True` lets the gates see the cell state; `forget_bias` is the initial bias of the forget gate: a
    number, (first, last) spread evenly over the units, or a number for each unit. `RecurrentStack` describes the other
    options."""

    torch_type = nn.LSTM

    @suggests_options
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        peephole: bool = False,
        forget_bias: GateBias = 0.0,
        **options: Unpack[StackOptions],
    ) -> None:
        make_cell = partial(LSTMCell, peephole=peephole, forget_bias=forget_bias)
        super().__init__(
            make_cell,
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            **options,
        )
