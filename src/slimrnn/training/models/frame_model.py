"""A net whose input frames may be quantised to bytes."""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn.data.youtube8m import SCALE, SHIFT
from slimrnn.layers.stack import States
from slimrnn.training.models.sequence_model import SequenceModel


class FrameModel(SequenceModel):
    """A SequenceModel that dequantises its inputs, so that batches take a quarter of the memory on the way."""

    def forward(
        self, inputs: Tensor, state: States | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:
        """Bytes or floats (T, B, I) to the output (B, O), and the state after the last step."""
        if inputs.dtype == torch.uint8:
            inputs = dequantised(inputs, self.readout.weight.dtype)
        return super().forward(inputs, state, lengths)

    def step(self, x_t: Tensor, state: States | None = None) -> tuple[Tensor, States]:
        return super().step(dequantised(x_t, self.readout.weight.dtype) if x_t.dtype == torch.uint8 else x_t, state)


def dequantised(frames: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes to floats in [-2, 2]."""
    return frames.to(dtype).mul_(SCALE).add_(SHIFT)
