"""Int8Embedding: vectors of tokens in int8, each with its scale."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn.exporting.int8.checked import CheckedNumbers
from slimrnn.exporting.int8.rows import as_floats, check_finite, rounded_rows


class Int8Embedding(CheckedNumbers):
    """As nn.Embedding: `numbers` int8 (num_embeddings, embedding_dim) and their `scale` (num_embeddings)."""

    scale: Tensor
    numbers: Tensor

    def __init__(self, num_embeddings: int, embedding_dim: int, device: Any = None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.scale = nn.Parameter(torch.zeros(num_embeddings, device=device), requires_grad=False)
        numbers = torch.zeros(num_embeddings, embedding_dim, dtype=torch.int8, device=device)
        self.numbers = nn.Parameter(numbers, requires_grad=False)

    @classmethod
    @torch.no_grad()
    def of(cls, embedding: nn.Embedding) -> Int8Embedding:
        made = cls(embedding.num_embeddings, embedding.embedding_dim, "meta")
        numbers, scale = rounded_rows(embedding.weight)
        check_finite(scale, "an embedding")
        made.numbers = nn.Parameter(numbers, requires_grad=False)
        made.scale = nn.Parameter(scale, requires_grad=False)
        made.train(embedding.training)
        return made

    @property
    def weight(self) -> Tensor:
        """What the numbers stand for."""
        return as_floats(self.numbers, self.scale)

    def forward(self, tokens: Tensor) -> Tensor:
        """(...) -> (..., embedding_dim)"""
        rows = functional.embedding(tokens, self.numbers).float()  # which refuses tokens that there are not
        return rows * functional.embedding(tokens, self.scale.unsqueeze(-1))

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
