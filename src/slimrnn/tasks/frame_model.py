"""A net that reads frames as bytes."""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn.data.youtube8m import SCALE, SHIFT
from slimrnn.layers.stack import States
from slimrnn.training.model import SequenceModel


class FrameModel(SequenceModel):
    """A SequenceModel whose inputs may be bytes, which it turns into the numbers that they stand for.

    As numbers, a batch of frames would be four times as large on its way here."""

    def forward(
        self, inputs: Tensor, state: States | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:
        """Bytes (T, B, I), or numbers, to the output (B, O), and the state after the last step."""
        if inputs.dtype == torch.uint8:
            inputs = dequantised(inputs, self.readout.weight.dtype)
        return super().forward(inputs, state, lengths)


def dequantised(frames: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The numbers in [-2, 2] that bytes stand for."""
    return frames.to(dtype).mul_(SCALE).add_(SHIFT)
