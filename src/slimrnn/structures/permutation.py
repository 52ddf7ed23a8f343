"""Permutation: the units change places. No parameters; a factor of products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn._fields import field_dtype
from slimrnn._fixed_buffers import FixedBuffers
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap


class PermutationMap(FixedBuffers, StructuredMap):
    """(y_g)_i = h_{o_i}, the same for every gate, with the fixed order o (n)."""

    native = "permutation"
    order: Tensor
    blank: Tensor

    def __init__(self, spec: PermutationSpec, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        self.register_buffer("order", spec.find_order(shape.in_size, shape.device))
        blank = torch.empty(0, dtype=shape.dtype, device=shape.device)
        self.register_buffer("blank", blank, persistent=False)  # has the dtype of the matrix, which has no numbers

    def fixed_buffers(self) -> dict[str, Tensor]:
        return {"blank": torch.empty(0)}

    def some_numbers(self, prepared: Prepared | None = None) -> Tensor:
        return self.blank.to(field_dtype(self.blank.dtype, self.complex))

    def prepare(self) -> Prepared:
        return (self.order,)

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        (order,) = prepared or self.prepare()
        count = len(range(*gates.indices(self.shape.gates)))
        moved = h[..., order].unsqueeze(-2)
        return moved.expand(*moved.shape[:-2], count, -1)

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        (order,) = prepared or self.prepare()
        return y.sum(-2)[..., order.argsort()]

    def project_(self, matrix: Tensor) -> None:
        """The one member there is."""

    @property
    def macs(self) -> int:
        return 0


class PermutationSpec(Structure):
    """What Permutation, Shift and Shuffle share."""

    map_type = PermutationMap

    def find_order(self, size: int, device: torch.device | str | None) -> Tensor:
        """Where unit i of the result comes from, (n)."""
        raise NotImplementedError(f"{type(self).__name__} does not define its order")

    def check(self, shape: Shape) -> None:
        if shape.out_size != shape.in_size:
            raise ValueError(f"expected a square matrix for {self!r}, got {shape.out_size} x {shape.in_size}")


@dataclass(frozen=True)
class Permutation(PermutationSpec):
    """(W h)_i = h_{order_i}: units change places, in the given order, in one drawn from `seed`, or, without either, in
    one drawn by torch's generator when the layer is made. No parameters, no multiply-adds. Square only."""

    order: tuple[int, ...] | None = None
    seed: int | None = None

    def __init__(self, order: Sequence[int] | None = None, seed: int | None = None) -> None:
        if order is not None:
            if seed is not None:
                raise ValueError(f"expected an order or a seed, got both: {order!r} and {seed!r}")
            order = tuple(order)
            if not order or sorted(order) != list(range(len(order))):
                raise ValueError(f"expected the numbers from 0 on in some order, got {order!r}")
        if seed is not None and seed != 0:
            check_count("seed", seed)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "seed", seed)

    def find_order(self, size: int, device: torch.device | str | None) -> Tensor:
        if self.order is not None:
            return torch.tensor(self.order, device=device)
        if self.seed is None:
            return torch.randperm(size, device=device)
        order = torch.randperm(size, generator=torch.Generator().manual_seed(self.seed), device="cpu")
        return order.to(device or torch.get_default_device())

    def check(self, shape: Shape) -> None:
        super().check(shape)
        if self.order is not None and len(self.order) != shape.in_size:
            raise ValueError(f"expected an order of {shape.in_size} units, got one of {len(self.order)}")

    def __repr__(self) -> str:
        if self.order is not None:
            return f"Permutation({list(self.order)})" if len(self.order) <= 16 else f"Permutation(<{len(self.order)}>)"
        return "Permutation()" if self.seed is None else f"Permutation(seed={self.seed})"
