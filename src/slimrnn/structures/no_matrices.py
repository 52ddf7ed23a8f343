"""The map of a cell without recurrent matrices, whatever the structure: it holds nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn._fields import field_dtype
from slimrnn._fixed_buffers import FixedBuffers
from slimrnn.ops.terms import Term
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap


class NoMatrices(FixedBuffers, StructuredMap):
    """y = (), for a shape with no gates."""

    empty: Tensor

    def __init__(self, spec: Structure, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        dtype = field_dtype(shape.dtype or torch.get_default_dtype(), shape.complex)
        sizes = (0, shape.out_size, shape.in_size)
        self.register_buffer("empty", torch.zeros(sizes, dtype=dtype, device=shape.device), persistent=False)

    def fixed_buffers(self) -> dict[str, Tensor]:
        return {"empty": torch.empty(0, self.shape.out_size, self.shape.in_size)}

    def prepare(self) -> Prepared:
        return (self.empty,)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        return h.new_zeros(*h.shape[:-1], 0, self.shape.out_size)

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        return y.new_zeros(*y.shape[:-2], self.shape.in_size)

    def terms(self, prepared: Prepared) -> list[Term] | None:
        return []

    @property
    def term_count(self) -> int | None:
        return 0

    def project_(self, matrix: Tensor) -> None:
        """There is only one."""

    def penalty(self) -> Tensor:
        return self.empty.real.new_zeros(())

    @property
    def macs(self) -> int:
        return 0
