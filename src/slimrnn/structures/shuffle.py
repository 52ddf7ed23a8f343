"""Shuffle: groups of units are dealt out to all others, as between the factors of a Monarch matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn._checks import check_count
from slimrnn.structures.base import Shape
from slimrnn.structures.permutation import PermutationSpec


@dataclass(frozen=True)
class Shuffle(PermutationSpec):
    """(W h)_{j g + i} = h_{i n/g + j}: g groups of units, read one after the other, are dealt out in turn. No
    parameters, no multiply-adds. Square only.

    `BlockDiagonal(g) @ Shuffle(g) @ BlockDiagonal(g)` is a Monarch matrix (Dao et al. 2022): with g² ≤ n every unit
    sees every other."""

    groups: int

    def __post_init__(self) -> None:
        check_count("groups", self.groups)

    def find_order(self, size: int, device: torch.device | str | None) -> Tensor:
        return torch.arange(size, device=device).reshape(self.groups, -1).T.flatten()

    def check(self, shape: Shape) -> None:
        super().check(shape)
        if shape.in_size % self.groups:
            raise ValueError(f"expected a size divisible by groups={self.groups}, got {shape.in_size}")

    def __repr__(self) -> str:
        return f"Shuffle({self.groups})"
