"""What may take the place of a matrix, with what it costs and loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from slimrnn.compression.allocation import Choice
from slimrnn.compression.approximation import Approximator
from slimrnn.compression.budget import Unit
from slimrnn.compression.families import members
from slimrnn.compression.second_moments import Moments
from slimrnn.compression.sites import Site
from slimrnn.compression.weighting import DAMPED, Weighting
from slimrnn.structures import Kronecker, Sparse, Structure
from slimrnn.structures.base import StructuredMap
from slimrnn.structures.product import ProductMap
from slimrnn.structures.sum import SumMap

# Multiply-adds that a structure does in the time of one of a dense matrix's, and what it costs beyond that, in these:
# LSTMs of 32 to 512 units on one thread. docs/compress.md has the figures.
SPEEDS: dict[type[Structure], float] = {Kronecker: 0.4, Sparse: 0.03}
OVERHEADS: dict[type[Structure], int] = {Kronecker: 10_000, Sparse: 5_000}
OF_FURTHER_TERMS = 4_000
OF_PLAIN_TORCH = 0.05  # without a kernel in the native core


@dataclass(frozen=True)
class Candidate:
    """A structure for a matrix."""

    spec: Structure
    parameters: int
    macs: int  #: multiply-adds per step and sequence
    error: float = 0.0  #: weighted
    as_it_is: bool = False

    def cost(self, unit: Unit, item_size: int) -> int:
        return {"parameters": self.parameters, "bytes": self.parameters * item_size, "macs": self.macs}[unit]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix of the model, and what may take its place: first it stays as it is."""

    site: Site
    candidates: tuple[Candidate, ...]
    approximator: Approximator | None = None  #: None where errors are not known yet

    @property
    def item_size(self) -> int:
        return next(self.site.map.parameters()).element_size()

    @property
    def present(self) -> Candidate:
        """The matrix as it is."""
        return self.candidates[0]

    @property
    def whole(self) -> float:
        """The error of nothing at all."""
        return self.approximated.weighting.whole

    @property
    def approximated(self) -> Approximator:
        assert self.approximator is not None  # `measured` made it
        return self.approximator

    def choices(self, unit: Unit) -> list[Choice]:
        return [Choice(c.cost(unit, self.item_size), c.error) for c in self.candidates]

    def measured(self, moments: Moments | None, damping: float = DAMPED) -> Matrix:
        """With the errors of all candidates."""
        map = self.site.map
        weighting = Weighting(self.site.matrix().cpu(), map.shape.gates, moments, damping)
        approximator = Approximator(weighting, map.shape, map.weight_norm)
        others = [replace(c, error=approximator.error(c.spec)) for c in self.candidates[1:]]
        return Matrix(self.site, (self.present, *others), approximator)


def matrices_of(sites: Sequence[Site], structures: Sequence[str | Structure], asked: bool) -> list[Matrix]:
    """Every matrix with its candidates, whose errors are not known yet. One that is larger than the matrix as it is,
    or slower unless `asked` for, is none."""
    found = []
    for site in sites:
        map, shape = site.map, site.map.shape
        present = Candidate(map.spec, map.num_parameters, map.macs, as_it_is=True)
        others = []
        for spec in members(structures, shape):
            new = spec.build(shape.out_size, shape.in_size, shape.gates, weight_norm=map.weight_norm, device="meta")
            if new.num_parameters < map.num_parameters and (asked or slowness(new) < slowness(map)):
                others.append(Candidate(spec, new.num_parameters, new.macs))
        found.append(Matrix(site, (present, *others)))
    return found


def slowness(one: StructuredMap) -> float:
    """The time of a product, in multiply-adds of a dense matrix."""
    if isinstance(one, SumMap | ProductMap):
        parts = [part for part in one.parts if isinstance(part, StructuredMap)]
        return sum(map(slowness, parts)) + OF_FURTHER_TERMS * (len(parts) - 1)
    kind = type(one.spec)
    return one.macs / (OF_PLAIN_TORCH if one.native is None else SPEEDS.get(kind, 1.0)) + OVERHEADS.get(kind, 0)
