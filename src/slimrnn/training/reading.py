"""How a task's net is given sequences to read."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from slimrnn.sequence import EncoderDecoder


def reader(model: nn.Module, inputs: Tensor, lengths: Tensor | None) -> tuple[nn.Module, tuple[Any, ...]]:
    """The part of a net that reads, and what it is called with: of an encoder-decoder, the encoder."""
    if isinstance(model, EncoderDecoder):
        return model.encoder, (inputs, lengths)
    return model, (inputs, None, lengths)
