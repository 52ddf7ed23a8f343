"""The net of a recommender: embeddings of events, recurrent layers, and scores of all items.

Shape suffixes: T time, B sequences, F features of an event, E width of the embeddings, H width of the layers' output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.training.config import ModelConfig
from slimrnn.training.models.sequence_model import build_layers

EMBEDDING_STD = 0.1  # at the start; with torch's 1 the net makes confident predictions before it has learned


class RecommenderModel(nn.Module):
    """x = item + page + time gap embeddings; h = layers(x); score of item j = output_j · (P h) + bias_j.

    P is there only if the layers' output and the embeddings differ in size. `tied`: item = output embedding."""

    def __init__(
        self, sizes: dict[str, int], width: int, config: ModelConfig, tied: bool = False, catalogue: int = 0
    ) -> None:
        super().__init__()
        embeddings = {name: _embedding(size, width) for name, size in sizes.items()}
        self.inputs = nn.ModuleDict(embeddings)
        self.rnn = build_layers(width, config)
        size = self.rnn.output_size
        self.projection = nn.Identity() if size == width else nn.Linear(size, width, bias=False)
        self.output = embeddings["item"] if tied else _embedding(sizes["item"], width)
        self.bias = nn.Parameter(self.output.weight.new_zeros(sizes["item"]))
        self.catalogue: Tensor  # checksum of the ids of items and pages, saved with the weights
        self.register_buffer("catalogue", torch.tensor(catalogue))

    def forward(self, inputs: Tensor, state: Any = None, lengths: Tensor | None = None) -> tuple[Tensor, Any]:
        """Event features (T, B, F) to (T, B, E), to be multiplied with the output embeddings, and the state."""
        embedded_TBE = sum(embedding(inputs[..., k]) for k, embedding in enumerate(self.inputs.values()))
        hidden_TBH, state = self.rnn(embedded_TBE, state, lengths=lengths)
        return self.projection(hidden_TBH), state

    @property
    def output_embedding(self) -> tuple[Tensor, Tensor]:
        """Of all items (V, E), and their biases (V)."""
        return self.output.weight, self.bias

    def scores(self, rows: Tensor) -> Tensor:
        """Scores of all items: (..., E) to (..., V)."""
        scores: Tensor = nn.functional.linear(rows, self.output.weight, self.bias)
        return scores


def _embedding(size: int, width: int) -> nn.Embedding:
    embedding = nn.Embedding(size, width)
    nn.init.normal_(embedding.weight, std=EMBEDDING_STD)
    return embedding
