"""A net that reads symbols by number."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from slimrnn.layers.stack import States
from slimrnn.training.models.sequence_model import SequenceModel


class SymbolModel(SequenceModel):
    """A SequenceModel whose inputs are (T, B) numbers of symbols; it makes them one-hot.

    One-hot vectors of a whole text would be fifty times as large as the text."""

    def forward(
        self, inputs: Tensor, state: States | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:
        """Symbols (T, B) to the output, (T, B, O) or (B, O), and the state after the last step."""
        return super().forward(self.one_hot(inputs), state, lengths)

    def one_hot(self, symbols: Tensor) -> Tensor:
        """(...) to (..., I), in the precision of the net."""
        return functional.one_hot(symbols.long(), self.rnn.input_size).to(self.readout.weight.dtype)
