"""Shift: every unit takes the place of the one k further on. No parameters."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slimrnn.structures.permutation import PermutationSpec


@dataclass(frozen=True)
class Shift(PermutationSpec):
    """(W h)_i = h_{i − by mod n}: all units move by so many places, around the end. No parameters, no multiply-adds.
    Square only."""

    by: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.by, bool) or not isinstance(self.by, int):
            raise TypeError(f"expected by to be an int, got {self.by!r}")

    def find_order(self, size: int, device: torch.device | str | None) -> Tensor:
        return (torch.arange(size, device=device) - self.by) % size

    def __repr__(self) -> str:
        return f"Shift({self.by})"
