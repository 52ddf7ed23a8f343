"""What may take the place of a matrix, with what it costs and loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimrnn.compression.allocation import Choice
from slimrnn.compression.approximation import Approximator
from slimrnn.compression.budget import Unit
from slimrnn.compression.families import members
from slimrnn.compression.second_moments import Moments
from slimrnn.compression.sites import Site
from slimrnn.compression.weighting import Weighting
from slimrnn.structures import Kronecker, Sparse, Structure
from slimrnn.structures.base import StructuredMap
from slimrnn.structures.product import ProductMap
from slimrnn.structures.sum import SumMap

# Multiply-adds that a structure does in the time of one of a dense matrix's (benchmarks/compression.py --speeds).
SPEEDS: dict[type[Structure], float] = {Kronecker: 0.25, Sparse: 0.1}
OF_PLAIN_TORCH = 0.05  # without a kernel in the native core


@dataclass(frozen=True)
class Candidate:
    """A structure for a matrix."""

    spec: Structure
    parameters: int
    macs: int  #: multiply-adds per step and sequence
    time: float  #: in multiply-adds of a dense matrix
    error: float  #: weighted
    as_it_is: bool = False

    def cost(self, unit: Unit, item_size: int) -> int:
        return {"parameters": self.parameters, "bytes": self.parameters * item_size, "macs": self.macs}[unit]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix of the model, and what may take its place."""

    site: Site
    approximator: Approximator
    candidates: tuple[Candidate, ...]
    whole: float  #: the error of nothing at all: the energy of the matrix
    asked: bool  #: the structures were asked for, also where they are slower than what is there

    @property
    def item_size(self) -> int:
        return next(self.site.map.parameters()).element_size()

    @property
    def present(self) -> Candidate:
        """The matrix as it is."""
        return self.candidates[0]

    def choices(self, unit: Unit) -> list[Choice]:
        return [Choice(c.cost(unit, self.item_size), c.error) for c in self.candidates]


def matrices_of(
    sites: Sequence[Site], moments: dict[str, Moments] | None, structures: Sequence[str | Structure], asked: bool
) -> list[Matrix]:
    """Every matrix with its candidates; one that is larger than the matrix as it is, or slower unless `asked` for, is
    none."""
    found = []
    for site in sites:
        map = site.map
        weighting = Weighting(site.matrix().cpu(), map.shape.gates, None if moments is None else moments[site.name])
        approximator = Approximator(weighting, map.shape, map.weight_norm)
        present = Candidate(map.spec, map.num_parameters, map.macs, slowness(map), 0.0, as_it_is=True)
        others = _others(approximator, structures, present, asked)
        found.append(Matrix(site, approximator, (present, *others), weighting.whole, asked))
    return found


def _others(
    approximator: Approximator, structures: Sequence[str | Structure], present: Candidate, asked: bool
) -> list[Candidate]:
    found = []
    for spec in members(structures, approximator.shape):
        map = approximator.build(spec, "meta")
        time = slowness(map)
        if map.num_parameters >= present.parameters or (time >= present.time and not asked):
            continue
        found.append(Candidate(spec, map.num_parameters, map.macs, time, approximator.error(spec)))
    return found


def slowness(map: StructuredMap) -> float:
    """The time of a product, in multiply-adds of a dense matrix."""
    if isinstance(map, SumMap | ProductMap):
        return sum(slowness(part) for part in map.parts if isinstance(part, StructuredMap))
    return map.macs / (OF_PLAIN_TORCH if map.native is None else SPEEDS.get(type(map.spec), 1.0))
