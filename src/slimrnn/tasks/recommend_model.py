"""The net of a recommender: embeddings of events, recurrent layers, and scores of all items.

Shape suffixes: T time, B sequences, F features of an event, E width of the embeddings, H width of the layers' output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.training.config import ModelConfig
from slimrnn.training.model import build_layers

SPREAD = 0.1  # of the first embeddings: torch's own, of 1, make a net that is sure of itself before it has learned


class RecommenderModel(nn.Module):
    """x = item + page + time gap embeddings; h = layers(x); score of item j = output_j · (P h) + bias_j.

    P is there only where the layers' output is not as wide as the embeddings. A tied net has one embedding of items for
    its input and its output."""

    def __init__(
        self, sizes: dict[str, int], width: int, config: ModelConfig, tied: bool = False, catalogue: int = 0
    ) -> None:
        super().__init__()
        embeddings = {name: _embedding(size, width) for name, size in sizes.items()}
        self.inputs = nn.ModuleDict(embeddings)
        self.rnn = build_layers(width, config)
        own = self.rnn.output_size
        self.projection = nn.Identity() if own == width else nn.Linear(own, width, bias=False)
        self.output = embeddings["item"] if tied else _embedding(sizes["item"], width)
        self.bias = nn.Parameter(self.output.weight.new_zeros(sizes["item"]))
        self.catalogue: Tensor  # a checksum of what the numbers of items and pages stand for, kept with the weights
        self.register_buffer("catalogue", torch.tensor(catalogue))

    def forward(self, inputs: Tensor, state: Any = None, lengths: Tensor | None = None) -> tuple[Tensor, Any]:
        """Features of events (T, B, F) to what is multiplied with the items' embeddings, (T, B, E), and the state."""
        embedded_TBE = sum(embedding(inputs[..., k]) for k, embedding in enumerate(self.inputs.values()))
        hidden_TBH, state = self.rnn(embedded_TBE, state, lengths=lengths)
        return self.projection(hidden_TBH), state

    @property
    def output_embedding(self) -> tuple[Tensor, Tensor]:
        """Of all items (V, E), and their biases (V)."""
        return self.output.weight, self.bias

    def scores(self, rows: Tensor) -> Tensor:
        """(..., E) to (..., V), of all items."""
        scores: Tensor = nn.functional.linear(rows, self.output.weight, self.bias)
        return scores


def _embedding(size: int, width: int) -> nn.Embedding:
    embedding = nn.Embedding(size, width)
    nn.init.normal_(embedding.weight, std=SPREAD)
    return embedding
