"""A net that reads symbols by number."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from slimrnn.layers.stack import RecurrentStack, States
from slimrnn.training.config import ModelConfig
from slimrnn.training.models.sequence_model import SequenceModel


class SymbolModel(SequenceModel):
    """A SequenceModel whose inputs are (T, B) numbers of symbols, each a one-hot vector.

    The layers look up what those give; only context switching multiplies by them, and so needs them written out."""

    def __init__(self, input_size: int, output_size: int, config: ModelConfig, every_step: bool) -> None:
        super().__init__(input_size, output_size, config, every_step, one_hot=True)

    def forward(
        self, inputs: Tensor, state: States | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:
        """Symbols (T, B) to the output, (T, B, O) or (B, O), and the state after the last step."""
        given = inputs if isinstance(self.rnn, RecurrentStack) else self.one_hot(inputs)
        return super().forward(given, state, lengths)

    def one_hot(self, symbols: Tensor) -> Tensor:
        """(...) to (..., I), in the precision of the net."""
        return functional.one_hot(symbols.long(), self.rnn.input_size).to(self.readout.weight.dtype)
