"""The structures that a matrix may be approximated by, by the names that the settings use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from slimrnn._checks import suggestion
from slimrnn.structures import BlockDiagonal, Dense, Diagonal, Kronecker, LowRank, Sparse, Structure
from slimrnn.structures.base import Shape

Family = Callable[[Shape], Iterator[Structure]]
SIZES = 10  # of a family whose members are fitted one by one


def _ranks(shape: Shape, most: int | None = None) -> list[int]:
    """All, or `most` of them, evenly spread in their logarithms."""
    largest = min(shape.out_size, shape.in_size)
    if most is None or largest <= most:
        return list(range(1, largest + 1))
    return sorted({round(largest ** (k / (most - 1))) for k in range(most)})


def _tied_low_rank(shape: Shape) -> Iterator[Structure]:
    yield from (LowRank(rank, tied=True) for rank in _ranks(shape))


def _low_rank(shape: Shape) -> Iterator[Structure]:
    yield from (LowRank(rank) for rank in _ranks(shape, 2 * SIZES))


def _low_rank_diagonal(shape: Shape) -> Iterator[Structure]:
    yield from (LowRank(rank, tied=True) + Diagonal() for rank in _ranks(shape, SIZES))


def _block_diagonal(shape: Shape) -> Iterator[Structure]:
    common = math.gcd(shape.out_size, shape.in_size)
    yield from (BlockDiagonal(blocks) for blocks in range(2, common + 1) if common % blocks == 0)


def _factors(shape: Shape) -> Iterator[Kronecker]:
    """Two factors, as square as they can be, and their sizes apart from that."""
    rows = [p for p in range(2, shape.out_size) if shape.out_size % p == 0]
    columns = [q for q in range(2, shape.in_size) if shape.in_size % q == 0]
    for p in rows:
        near = sorted(columns, key=lambda q: abs(math.log(q / p * shape.out_size / shape.in_size)))
        for q in near[:1]:
            yield Kronecker([(p, q), (shape.out_size // p, shape.in_size // q)])


def _kronecker_low_rank(shape: Shape) -> Iterator[Structure]:
    balanced = sorted(_factors(shape), key=lambda spec: sum(p * q for p, q in spec.factors))
    for spec in balanced[:1]:
        yield from (spec + LowRank(rank, tied=True) for rank in _ranks(shape, SIZES))


def _kronecker_sparse(shape: Shape) -> Iterator[Structure]:
    balanced = sorted(_factors(shape), key=lambda spec: sum(p * q for p, q in spec.factors))
    for spec in balanced[:1]:
        yield from (spec + Sparse(2.0**-k, seed=1) for k in range(1, 8))


FAMILIES: dict[str, Family] = {
    "tied-low-rank": _tied_low_rank,
    "low-rank": _low_rank,
    "tied-low-rank+diagonal": _low_rank_diagonal,
    "block-diagonal": _block_diagonal,
    "kronecker": _factors,
    "kronecker+tied-low-rank": _kronecker_low_rank,
    "kronecker+sparse": _kronecker_sparse,
    "dense": lambda shape: iter([Dense()]),
}
# All sizes of these are had for one decomposition; those of the others are fitted one by one.
USUAL = ("tied-low-rank", "low-rank", "dense")

Structures = Sequence[str | Structure]


def check_structures(given: Structures | str | Structure | None) -> tuple[str | Structure, ...]:
    """Names of families and single structures; by default the usual families."""
    if given is None:
        return USUAL
    listed = (given,) if isinstance(given, str | Structure) else tuple(given)
    for one in listed:
        if isinstance(one, Structure):
            continue
        if not isinstance(one, str) or one.replace(" ", "") not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise ValueError(f"expected structures from {known}, or structures, got {one!r}{suggestion(one, FAMILIES)}")
    if not listed:
        raise ValueError("expected at least one structure, got none")
    return tuple(one.replace(" ", "") if isinstance(one, str) else one for one in listed)


def members(given: Sequence[str | Structure], shape: Shape) -> Iterator[Structure]:
    """Those of a shape: a structure that does not have it is passed over."""
    for one in given:
        for spec in [one] if isinstance(one, Structure) else FAMILIES[one](shape):
            try:
                spec.check(shape)
            except ValueError:
                continue
            yield spec
