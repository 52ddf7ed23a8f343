"""EncoderDecoder: sequence to sequence (lecture, "Encoder-Decoder Sequence-to-Sequence Architectures").

Shape suffixes: T time, B batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.sequence.decoder import Decoder
from slimrnn.sequence.encoder import Encoder
from slimrnn.sequence.generated import Generated
from slimrnn.sequence.sampling import GREEDY, Sampling
from slimrnn.sequence.stream import Stream

Lengths = Tensor | Sequence[int] | None


class EncoderDecoder(nn.Module):
    """P(y | x) = P(y | c) with c = encoder(x). Every method is the decoder's, with a source instead of a context."""

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        if decoder.context_size != encoder.context_size:
            raise ValueError(
                f"expected a decoder of context_size={encoder.context_size}, the encoder's, got {decoder.context_size}"
            )
        self.encoder, self.decoder = encoder, decoder

    def forward(self, *args: Any, **options: Any) -> Tensor:
        """The loss, so that wrappers such as DistributedDataParallel can be put around both."""
        return self.loss(*args, **options)

    def log_prob(
        self, target: Tensor, source: Tensor, target_lengths: Lengths = None, source_lengths: Lengths = None
    ) -> Tensor:
        """(B) log-probabilities of the targets."""
        return self.decoder.log_prob(target, self.encoder(source, source_lengths), target_lengths)

    def loss(
        self,
        target: Tensor,
        source: Tensor,
        target_lengths: Lengths = None,
        source_lengths: Lengths = None,
        *,
        forcing: float = 1.0,
        draw: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The mean cost of a decision; see `Decoder.losses`."""
        context = self.encoder(source, source_lengths)
        return self.decoder.loss(target, context, target_lengths, forcing=forcing, draw=draw, generator=generator)

    def stream(
        self, source: Tensor, how: Sampling = GREEDY, *, source_lengths: Lengths = None, **options: Any
    ) -> Stream:
        """Elements as they come; options as those of `Decoder.stream`."""
        with torch.no_grad():
            context = self.encoder(source, source_lengths)
        return self.decoder.stream(context, how, **options)

    def generate(
        self, source: Tensor, how: Sampling = GREEDY, *, source_lengths: Lengths = None, **options: Any
    ) -> Generated:
        """Whole sequences; options as those of `Decoder.generate`."""
        return self.stream(source, how, source_lengths=source_lengths, **options).rest()

    def beam_search(
        self, source: Tensor, width: int = 4, *, source_lengths: Lengths = None, **options: Any
    ) -> Generated:
        """The best sequences found; options as those of `Decoder.beam_search`."""
        with torch.no_grad():
            context = self.encoder(source, source_lengths)
        return self.decoder.beam_search(context, width, **options)
