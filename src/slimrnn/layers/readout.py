"""ReadOut: from the states of a recurrent layer, in one direction or two, to outputs.

Shape suffixes: T time, B batch, H width of the layer's output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from slimrnn._checks import check_choice
from slimrnn.layers.affine import Affine
from slimrnn.layers.inputs import check_lengths, refuse_packed
from slimrnn.ops.reference import valid_steps


class Readable(Protocol):
    """What it reads from: RNN, GRU, LSTM, or what has their interface."""

    @property
    def output_size(self) -> int: ...


class Reading:
    """What a read-out does but for its product, which another class has."""

    at: str
    batch_first: bool
    bidirectional: bool
    in_features: int
    out_features: int
    product: Callable[[Tensor], Tensor]

    def forward(self, output: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
        """(T, B, H), (B, T, H) or (T, H) to outputs of the same form, or without time."""
        refuse_packed(output)
        if output.shape[-1] != self.in_features or output.dim() not in (2, 3):
            raise ValueError(f"expected a layer's output of width {self.in_features}, got shape {tuple(output.shape)}")
        if self.at == "every":
            return self.product(output)
        batched = output.dim() == 3
        h_TBH = output.transpose(0, 1) if batched and self.batch_first else output if batched else output.unsqueeze(1)
        time, batch = h_TBH.shape[:2]
        ragged = None if lengths is None else check_lengths(lengths, time, batch, output.device)
        summary = self._last(h_TBH, ragged) if self.at == "last" else self._over_time(h_TBH, ragged)
        return self.product(summary if batched else summary.squeeze(0))

    def _last(self, h_TBH: Tensor, lengths_B: Tensor | None) -> Tensor:
        sequences = torch.arange(h_TBH.shape[1], device=h_TBH.device)
        last = h_TBH[-1] if lengths_B is None else h_TBH[lengths_B - 1, sequences]
        if not self.bidirectional:
            return last
        half = h_TBH.shape[-1] // 2
        return torch.cat([last[:, :half], h_TBH[0, :, half:]], -1)

    def _over_time(self, h_TBH: Tensor, lengths_B: Tensor | None) -> Tensor:
        if lengths_B is None:
            return h_TBH.mean(0) if self.at == "mean" else h_TBH.amax(0)
        valid = valid_steps(h_TBH.shape[0], lengths_B)
        if self.at == "max":
            return h_TBH.masked_fill(~valid, -torch.inf).amax(0)
        return h_TBH.masked_fill(~valid, 0).sum(0) / lengths_B.unsqueeze(-1)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, at={self.at!r}"


class ReadOut(Reading, Affine):
    """o = V s + c, where s is

    at="every": the layer's output at every step, both directions side by side;
    at="last": what each direction has when it has seen the whole sequence: the last step, and of the backward
    direction the first;
    at="mean", "max": the mean or the largest value over all steps.

    `readout(output, lengths=...)` takes what the layer gave, padded or unbatched, and leaves padding out."""

    def __init__(self, rnn: Readable, output_size: int, at: str = "every", bias: bool = True) -> None:
        check_choice("at", at, ["every", "last", "mean", "max"])
        some = next(rnn.parameters()) if isinstance(rnn, torch.nn.Module) else torch.empty(0)
        super().__init__(rnn.output_size, output_size, bias, dtype=some.dtype, device=some.device)
        self.at = at
        self.batch_first = bool(getattr(rnn, "batch_first", False))
        self.bidirectional = bool(getattr(rnn, "bidirectional", False))
