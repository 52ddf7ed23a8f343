"""BlockDiagonal: the factorized RNN. Equal to g small RNNs side by side (factorized paper, eq. 14)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import glorot


class BlockDiagonalMap(StructuredMap):
    """y_g = diag(W_g1, ..., W_gb) h with weight (G, b, m/b, n/b)."""

    native = "block_diagonal"

    def __init__(self, spec: BlockDiagonal, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        self.blocks = b = spec.blocks
        self.add_parameter("weight", glorot(shape, shape.gates, b, shape.out_size // b, shape.in_size // b), rows=True)

    def prepare(self) -> Prepared:
        return (self.tensor("weight"),)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        weight = (prepared or self.prepare())[0][gates]
        count, b, rows, columns = weight.shape
        by_block = h.reshape(math.prod(h.shape[:-1]), b, columns).transpose(0, 1)
        y = by_block @ weight.permute(1, 3, 0, 2).reshape(b, columns, count * rows)  # (b, N, G m/b)
        y = y.reshape(b, y.shape[1], count, rows).permute(1, 2, 0, 3)
        return y.reshape(*h.shape[:-1], count, b * rows)

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        weight = (prepared or self.prepare())[0][gates].conj()
        count, b, rows, columns = weight.shape
        by_block = y.reshape(math.prod(y.shape[:-2]), count, b, rows).permute(2, 0, 1, 3).flatten(2)
        h = by_block @ weight.transpose(0, 1).reshape(b, count * rows, columns)  # (b, N, n/b)
        return h.transpose(0, 1).reshape(*y.shape[:-2], b * columns)

    def project_(self, matrix: Tensor) -> None:
        b, shape = self.blocks, self.shape
        grid = matrix.reshape(shape.gates, b, shape.out_size // b, b, shape.in_size // b)
        self.assign_("weight", grid.diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2))

    @property
    def macs(self) -> int:
        shape = self.shape
        return shape.gates * shape.out_size * shape.in_size // self.blocks * (4 if self.complex else 1)


@dataclass(frozen=True)
class BlockDiagonal(Structure):
    """`blocks` independent blocks of equal size: n²/blocks numbers per gate.

    As `input_structure` the input is cut into the same number of consecutive groups."""

    blocks: int

    map_type = BlockDiagonalMap

    def __post_init__(self) -> None:
        check_count("blocks", self.blocks)

    def __repr__(self) -> str:
        return f"BlockDiagonal({self.blocks})"

    def check(self, shape: Shape) -> None:
        for size in (shape.out_size, shape.in_size):
            if size % self.blocks:
                raise ValueError(f"expected sizes divisible by blocks={self.blocks}, got {size}")
