"""Dense: every entry of W_g is free. The structure of torch.nn's layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import glorot


def dense_product(weight: Tensor, h: Tensor) -> Tensor:
    """(G, m, n) times (..., n) -> (..., G, m)."""
    return (h @ weight.flatten(0, 1).mT).reshape(*h.shape[:-1], *weight.shape[:2])


class DenseMap(StructuredMap):
    """y_g = W_g h with weight (G, m, n)."""

    native = "block_diagonal"

    def __init__(self, spec: Structure, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        self._add_parameters(shape)

    def _add_parameters(self, shape: Shape) -> None:
        self.add_parameter("weight", glorot(shape, shape.gates, shape.out_size, shape.in_size), rows=True)

    def prepare(self) -> Prepared:
        return (self.tensor("weight"),)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        (weight,) = prepared or self.prepare()
        return dense_product(weight[gates], h)

    def affine(self, x: Tensor, bias: Tensor | None, prepared: Prepared | None = None) -> Tensor:
        # One real product does it all: the bias is the weight of a constant input, so that its gradient comes out of
        # the same product as the weight's, and a complex matrix takes a real vector to (real, imaginary) pairs.
        (weight,) = prepared or self.prepare()
        columns = weight if bias is None else torch.cat([weight, bias.unsqueeze(-1)], -1)
        if bias is not None:
            x = torch.cat([x, x.new_ones(*x.shape[:-1], 1)], -1)
        if not self.complex:
            return dense_product(columns, x)
        pairs = torch.view_as_real(columns).permute(2, 0, 1, 3).flatten(1)
        return torch.view_as_complex((x @ pairs).reshape(*x.shape[:-1], *weight.shape[:2], 2))

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        (weight,) = prepared or self.prepare()
        return y.flatten(-2) @ weight[gates].flatten(0, 1).conj()

    def project_(self, matrix: Tensor) -> None:
        self.assign_("weight", matrix)

    @property
    def macs(self) -> int:
        return self.shape.gates * self.shape.out_size * self.shape.in_size * (4 if self.complex else 1)


@dataclass(frozen=True)
class Dense(Structure):
    """Any matrix. n² numbers per gate, n² multiply-adds."""

    map_type = DenseMap
