"""Small models, and batches for them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CLASSES = 6
Labelled = tuple[Tensor, Tensor]


class Tagger(nn.Module):
    """Logits of a class at every step."""

    def __init__(self, rnn: nn.Module, width: int, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.rnn, self.out = rnn, nn.Linear(width, CLASSES, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.out(self.rnn(x)[0])
        return logits


def tagger(kind: type[nn.RNNBase] = nn.LSTM, **options: int) -> Tagger:
    """One whose states use few directions, so that there is something to weight by."""
    torch.manual_seed(0)
    rnn = kind(4, 12, **options)  # type: ignore[arg-type]
    return Tagger(rnn.double(), 12 * (2 if rnn.bidirectional else 1))


def batches(count: int = 3) -> list[Labelled]:
    torch.manual_seed(1)
    scale = torch.tensor([2.0, 1.0, 0.1, 0.01], dtype=torch.float64)
    inputs = [torch.randn(7, 5, 4, dtype=torch.float64) * scale for _ in range(count)]
    return [(x, torch.randint(CLASSES, (7, 5))) for x in inputs]


def cross_entropy(model: nn.Module, batch: Labelled) -> Tensor:
    x, labels = batch
    return functional.cross_entropy(model(x).flatten(0, 1), labels.flatten())
