"""SequenceNet: recurrent layers, a read-out and what comes after it, as one model that can be saved."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class SequenceNet(nn.Module):
    """`output, state = net(inputs, state, lengths)`: output(readout(rnn(inputs))) and the layers' last state.

    rnn -- RNN, GRU, LSTM or what has their interface; readout -- a ReadOut; output -- a module such as
    nn.Sequential(nn.ReLU(), nn.Linear(...)), or nn.Identity()."""

    def __init__(self, rnn: nn.Module, readout: nn.Module, output: nn.Module) -> None:
        super().__init__()
        self.rnn: Any = rnn
        self.readout: Any = readout
        self.output = output

    def forward(self, inputs: Tensor, state: Any = None, lengths: Tensor | None = None) -> tuple[Tensor, Any]:
        hidden, state = self.rnn(inputs, state, lengths=lengths)
        return self.output(self.readout(hidden, lengths)), state

    def step(self, x_t: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """One step of a sequence, and the state after it."""
        hidden, state = self.rnn.step(x_t, state)
        return self.output(self.readout.product(hidden)), state

    def initial_state(self, batch: int | None = None) -> Any:
        """The state before the first step."""
        return self.rnn.initial_state(batch)

    def stages(self) -> list[nn.Module]:
        """What the input passes through in a step, for exports that run steps only."""
        return [self.rnn, self.readout, self.output]
