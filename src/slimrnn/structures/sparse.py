"""Sparse: a few entries of W are free, the others are zero, at places that stay as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from slimrnn._checks import check_count, check_number
from slimrnn.structures.base import ALL, Prepared, Shape, Structure, StructuredMap
from slimrnn.structures.initial import uniform

Mask = tuple[tuple[bool, ...], ...]


class SparseMap(StructuredMap):
    """(y_g)_i = Σ_j v_gij h_j over the places (i, j) of gate g, with values (G, k) and positions i n + j (G, k)."""

    native = "sparse"
    positions: Tensor

    def __init__(self, spec: Sparse, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__(spec, shape, weight_norm)
        positions = spec.find_positions(shape)
        # Variance of an entry: one over the entries of a row, so that a product has the size of what goes in.
        bound = math.sqrt(3 * shape.out_size / positions.shape[1] / (2 if shape.complex else 1))
        self.add_parameter("values", uniform(shape, bound, *positions.shape))
        self.register_buffer("positions", positions)

    def prepare(self) -> Prepared:
        return self.tensor("values"), self.positions

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        values, positions = (t[gates] for t in prepared or self.prepare())
        n, m = self.shape.in_size, self.shape.out_size
        products = h[..., positions % n] * values  # (..., G, k)
        rows = (positions // n).expand(products.shape)
        return products.new_zeros(*products.shape[:-1], m).scatter_add(-1, rows, products)

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        values, positions = (t[gates] for t in prepared or self.prepare())
        n = self.shape.in_size
        rows = (positions // n).expand(*y.shape[:-1], -1)
        products = (y.gather(-1, rows) * values.conj()).flatten(-2)
        columns = (positions % n).flatten().expand(products.shape)
        return y.new_zeros(*y.shape[:-2], n).scatter_add(-1, columns, products)

    def project_(self, matrix: Tensor) -> None:
        """The matrix at the places of the mask; without a mask, its largest entries, wherever they are."""
        entries = matrix.flatten(1)
        assert isinstance(self.spec, Sparse)
        if self.spec.mask is None:
            largest = entries.abs().topk(self.positions.shape[1], dim=-1).indices
            self.positions.copy_(largest.sort(-1).values)
        self.assign_("values", entries.gather(1, self.positions))

    @property
    def macs(self) -> int:
        return self.positions.numel() * (4 if self.complex else 1)


@dataclass(frozen=True, init=False)
class Sparse(Structure):
    """W_ij is free where a mask says so and zero elsewhere: density · n² numbers per gate.

    Either `density`, the share of entries, drawn for every gate at random and evenly over the rows from `seed` (without
    one, by torch's generator when the layer is made), or `mask`, rows of booleans that hold for all gates.
    `Kronecker(...) + Sparse(0.01)` is a doped Kronecker product (Thakker et al. 2021)."""

    density: float | None
    mask: Mask | None
    seed: int | None

    map_type = SparseMap

    def __init__(self, density: float | None = None, mask: Any = None, seed: int | None = None) -> None:
        if (density is None) == (mask is None):
            raise ValueError(f"expected a density or a mask, got {'neither' if mask is None else 'both'}")
        if density is not None:
            check_number("density", density)
            if not 0 < density <= 1:
                raise ValueError(f"expected density in (0, 1], got {density}")
        if seed is not None and seed != 0:
            check_count("seed", seed)
        object.__setattr__(self, "density", density)
        object.__setattr__(self, "mask", None if mask is None else _checked(mask))
        object.__setattr__(self, "seed", seed)

    def find_positions(self, shape: Shape) -> Tensor:
        """i n + j of the free entries, in order, (G, k)."""
        gates, size = shape.gates, shape.out_size * shape.in_size
        device = torch.device(shape.device or torch.get_default_device())
        if self.mask is not None:
            found = torch.tensor(self.mask, device="cpu").flatten().nonzero().flatten()
            return found.expand(gates, -1).contiguous().to(device)
        count = self.count(size)
        if device.type == "meta":
            return torch.empty(gates, count, dtype=torch.int64, device=device)
        draw = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        with torch.device("cpu"):  # the same places on every device
            drawn = [_evenly(shape.out_size, shape.in_size, count, draw) for _ in range(gates)]
        return torch.stack(drawn).to(device)

    def count(self, size: int) -> int:
        """Free entries among so many."""
        assert self.density is not None
        return max(1, round(self.density * size))

    def check(self, shape: Shape) -> None:
        if self.mask is not None and (len(self.mask), len(self.mask[0])) != (shape.out_size, shape.in_size):
            wanted, got = f"{shape.out_size} x {shape.in_size}", f"{len(self.mask)} x {len(self.mask[0])}"
            raise ValueError(f"expected a mask of {wanted}, got one of {got}")

    def __repr__(self) -> str:
        if self.mask is not None:
            return f"Sparse(mask=<{sum(map(sum, self.mask))} of {len(self.mask)} x {len(self.mask[0])}>)"
        return f"Sparse({self.density}{'' if self.seed is None else f', seed={self.seed}'})"


def _evenly(rows: int, columns: int, count: int, draw: torch.Generator | None) -> Tensor:
    """So many random places, as many in each row, or one more in some: no unit sees much less than another."""
    each, more = divmod(count, rows)
    place_in_row = torch.rand(rows, columns, generator=draw).argsort(1).argsort(1)
    wanted = torch.full((rows, 1), each)
    wanted[torch.randperm(rows, generator=draw)[:more]] += 1
    return (place_in_row < wanted).flatten().nonzero().flatten()


def _checked(mask: Any) -> Mask:
    rows = mask.tolist() if hasattr(mask, "tolist") else mask
    if not isinstance(rows, Sequence) or not rows or not all(isinstance(row, Sequence) and row for row in rows):
        raise ValueError(f"expected a mask of rows of booleans, got {mask!r}")
    found = tuple(tuple(bool(entry) for entry in row) for row in rows)
    if len({len(row) for row in found}) > 1 or not any(map(any, found)):
        raise ValueError(f"expected a mask with rows of one length and something in them, got {mask!r}")
    return found
