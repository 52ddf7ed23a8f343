"""GRU: gated recurrent units with a recurrent matrix of any structure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from torch import nn

from slimrnn.cells import GRUCell
from slimrnn.cells.biases import GateBias
from slimrnn.layers.options import StackOptions, suggests_options
from slimrnn.layers.stack import RecurrentStack

if TYPE_CHECKING:
    from typing_extensions import Unpack


class GRU(RecurrentStack):
    """As torch.nn.GRU, with a recurrent matrix of any structure.

    reset="after" is torch's cell, "before" the low-rank paper's eq. 6; `update_bias` is the initial bias of the update
    gate, positive to carry the state: a number, (first, last) spread evenly over the units, or a number for each unit.
    `RecurrentStack` describes the other options. Of tokens, with an embedding of its own:

    >>> rnn = GRU(32, 128, vocabulary=1000, batch_first=True)
    >>> output, h_n = rnn(torch.randint(1000, (8, 50)))"""

    torch_type = nn.GRU

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
        reset: str = "after",
        update_bias: GateBias = 0.0,
        **options: Unpack[StackOptions],
    ) -> None:
        make_cell = partial(GRUCell, reset=reset, update_bias=update_bias)
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
