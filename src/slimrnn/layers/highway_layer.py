"""One highway layer: a candidate and a gate that says how much of it to take.

Shape suffixes: G the two gates, n units, r rank; `rows` are all vectors of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimrnn.structures import Structure
from slimrnn.structures.base import StructuredMap
from slimrnn.structures.low_rank import LowRankMap
from slimrnn.structures.sum import SumMap

NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "tanh": torch.tanh}
CANDIDATE, TRANSFORM = 0, 1  # the order of the matrices and of the biases


class HighwayLayer(nn.Module):
    """h ← t ⊙ f(W h + b) + (1 − t) ⊙ h with t = σ(W_t h + b_t) (low-rank paper, eq. 3).

    With batch normalisation W h and W_t h are normalised, and b and b_t are its biases. Dropout acts on the h that
    the matrices multiply, not on the one that is carried. A low-rank W = L R counts as two matrices: what is between
    them is normalised, without scale and bias, and dropped too (low-rank paper, A.1, and its authors' code)."""

    bias: Tensor | None

    def __init__(
        self,
        size: int,
        structure: Structure,
        *,
        nonlinearity: str = "relu",
        transform_bias: float = -1.0,
        batch_norm: bool = False,
        dropout: float = 0.0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.size, self.nonlinearity, self.dropout = size, nonlinearity, dropout
        self.matrices = structure.build(size, gates=2, dtype=dtype, device=device)
        bias = torch.zeros(2, size, dtype=dtype, device=device)
        bias[TRANSFORM] = transform_bias
        self.norm = nn.BatchNorm1d(2 * size, dtype=dtype, device=device) if batch_norm else None
        self.inner_norms = nn.ModuleList(
            nn.BatchNorm1d(part.rank * (1 if part.tied else 2), affine=False, dtype=dtype, device=device)
            for part in self._terms()
            if batch_norm and isinstance(part, LowRankMap)
        )
        if self.norm is None:
            self.bias = nn.Parameter(bias)
        else:
            self.register_parameter("bias", None)
            with torch.no_grad():
                self.norm.bias.copy_(bias.flatten())

    def forward(self, h: Tensor) -> Tensor:
        """(..., size) to the same shape."""
        rows = h.reshape(-1, self.size)
        products = self._affine(functional.dropout(rows, self.dropout, self.training))
        candidate = NONLINEARITIES[self.nonlinearity](products[:, CANDIDATE])
        gate = torch.sigmoid(products[:, TRANSFORM])
        return (rows + gate * (candidate - rows)).view_as(h)

    def _terms(self) -> Iterator[StructuredMap]:
        """The structures that W is the sum of."""
        for part in self.matrices.parts if isinstance(self.matrices, SumMap) else (self.matrices,):
            assert isinstance(part, StructuredMap)
            yield part

    def _affine(self, rows: Tensor) -> Tensor:
        """(rows, n) -> (rows, G, n): W h + b and W_t h + b_t, normalised if asked for."""
        if self.norm is None and not (self.training and self.dropout):
            return self.matrices.affine(rows, self.bias)
        if self.norm is not None and self.training and len(rows) < 2:
            raise ValueError(f"expected at least 2 vectors to normalise in training, got {len(rows)}")
        norms = iter(self.inner_norms)
        first, *others = (
            self._low_rank(part, rows, next(norms, None)) if isinstance(part, LowRankMap) else part.matvec(rows)
            for part in self._terms()
        )
        products = sum(others, first)
        if self.norm is None:
            assert self.bias is not None
            return products + self.bias
        normalised: Tensor = self.norm(products.flatten(1))
        return normalised.view_as(products)

    def _low_rank(self, part: LowRankMap, rows: Tensor, norm: nn.Module | None) -> Tensor:
        """L R h, with what is between the factors normalised and dropped, by one mask for both gates."""
        left_Gnr, right = part.prepare()
        inner = rows @ right.reshape(-1, self.size).mT
        inner = (inner if norm is None else norm(inner)).view(len(rows), -1, part.rank)  # one for both gates if tied
        if self.training and self.dropout:
            inner = inner * functional.dropout(torch.ones_like(inner[:, :1]), self.dropout)
        return (inner.transpose(0, 1) @ left_Gnr.mT).transpose(0, 1)
