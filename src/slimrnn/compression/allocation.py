"""Which approximation each matrix gets: the smallest sum of errors that the budget pays for.

    min Σ_i error_i(choice_i)   with   Σ_i cost_i(choice_i) ≤ budget

Costs are rounded up to one in CELLS of what the model costs now, which makes this a knapsack that dynamic programming
solves exactly, whether errors are convex in the cost or not. A larger budget allows whatever a smaller one does, so the
error never rises with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CELLS = 16384


class Choice(NamedTuple):
    """What an approximation costs and loses."""

    cost: int
    error: float


def allocate(options: Sequence[Sequence[Choice]], budget: int, whole: int) -> list[int] | None:
    """The number of the option that each matrix gets; None where even the cheapest ones cost more. `whole` is what the
    grid of costs is made of, the same for every budget."""
    best = [min(range(len(some)), key=lambda k: (some[k].error, some[k].cost)) for some in options]
    if sum(some[k].cost for some, k in zip(options, best, strict=True)) <= budget:
        return best
    cheapest = [min(range(len(some)), key=lambda k: (some[k].cost, some[k].error)) for some in options]
    if sum(some[k].cost for some, k in zip(options, cheapest, strict=True)) > budget:
        return None
    cell = max(1, whole // CELLS)
    return _solved(options, budget // cell, cell) or cheapest


def _solved(options: Sequence[Sequence[Choice]], room: int, cell: int) -> list[int] | None:
    """`least[c]` is the smallest error that c cells pay for."""
    least = np.zeros(room + 1)
    taken: list[NDArray[np.int64]] = []
    for some in options:
        new, number = np.full(room + 1, np.inf), np.full(room + 1, -1, dtype=np.int64)
        for k, (cost, error) in enumerate(some):
            cells = -(-cost // cell)
            if cells > room:
                continue
            candidate = np.full(room + 1, np.inf)
            candidate[cells:] = least[: room + 1 - cells] + error
            better = candidate < new
            new[better], number[better] = candidate[better], k
        least = new
        taken.append(number)
    if not np.isfinite(least[room]):
        return None
    chosen, left = [], room
    for some, number in zip(reversed(options), reversed(taken), strict=True):
        k = int(number[left])
        chosen.append(k)
        left -= -(-some[k].cost // cell)
    return chosen[::-1]
