"""RNN: Elman's net, and with modReLU the unitary and Kronecker nets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from torch import nn

from slimrnn.cells import ElmanCell
from slimrnn.layers.options import StackOptions, suggests_options
from slimrnn.layers.stack import RecurrentStack

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RNN(RecurrentStack):
    """h_t = f(U x_t + W h_{t−1} + b), as torch.nn.RNN, with W of any structure.

    `nonlinearity` is "tanh", "relu", "identity" or "modrelu"; modReLU's state is complex unless `complex=False`, and
    `modrelu_bias` is its initial bias.
    A Kronecker Recurrent Unit is `RNN(d, 512, nonlinearity="modrelu", structure=Kronecker([2] * 9))`.
    `RecurrentStack` describes the other options."""

    torch_type = nn.RNN

    @suggests_options
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        complex: bool | None = None,
        modrelu_bias: float = 0.0,
        **options: Unpack[StackOptions],
    ) -> None:
        make_cell = partial(ElmanCell, nonlinearity=nonlinearity, complex=complex, modrelu_bias=modrelu_bias)
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

    @property
    def nonlinearity(self) -> str:
        """As it was given; torch.nn.RNN has it, too."""
        cell = self.cell
        assert isinstance(cell, ElmanCell)  # what __init__ asked for
        return cell.nonlinearity
