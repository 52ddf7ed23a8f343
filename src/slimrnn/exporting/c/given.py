"""One term of a map, as what writes its C takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from slimrnn.exporting.c.source import Body, Source

Product = Callable[[Body, int, int, str, str], None]  # (body, first gate, last + 1, x, y)


@dataclass(frozen=True)
class Sizes:
    """Of a map: each gate's matrix is rows x columns; pairs is 2 of a complex one, else 1."""

    rows: int
    columns: int
    pairs: int = 1


@dataclass(frozen=True)
class Given:
    """The tensors of one term, and where it stands."""

    source: Source
    name: str
    what: str
    sizes: Sizes
    tensors: Sequence[Tensor]

    @property
    def suffix(self) -> str:
        return "_pairs" if self.sizes.pairs == 2 else ""

    def shape(self, number: int = 0) -> tuple[int, ...]:
        """Of a tensor, where a pair is no axis."""
        shape = tuple(self.tensors[number].shape)
        return shape[:-1] if self.sizes.pairs == 2 and self.tensors[number].is_floating_point() else shape

    def floats(self, number: int, own: str) -> str:
        return self.source.floats(f"{self.name}_{own}", self.tensors[number], f"{self.what}, {own}")
