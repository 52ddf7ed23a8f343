"""The largest state for a parameter budget."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

from slimrnn._checks import check_count
from slimrnn.layers.stack import RecurrentStack
from slimrnn.structures import Dense, Structure
from slimrnn.structures.base import Shape

Family = Structure | Callable[[int], Structure]


def hidden_size_for(
    budget: int,
    layer: Callable[..., RecurrentStack],
    input_size: int,
    *,
    structure: Family | None = None,
    input_structure: Family | None = None,
    **options: Any,
) -> int:
    """The largest n at which `layer(input_size, n, structure=..., **options)` has at most `budget` parameters.

    A structure may be a function of the size, where its own parameters follow from it:
    `structure=lambda n: Kronecker([2] * round(math.log2(n)))`. Sizes that a structure cannot have are passed over; the
    number of parameters is taken to grow with n."""
    check_count("budget", budget)
    check_count("input_size", input_size)
    options["device"] = "meta"  # counting needs no memory
    delays = options.get("delays", 1)
    groups = 1 if isinstance(delays, int) else len(delays)  # of units, each with matrices of its own

    def parameters(n: int) -> int:
        square, inward = _at(structure, n // groups), _at(input_structure, n // groups)
        module = layer(input_size, n, structure=square, input_structure=inward, **options)
        return module.num_parameters

    def exists(n: int) -> bool:
        # Cheap, so that all sizes can be tried. Fields are the cell's affair: what it refuses, `parameters` raises.
        if n % groups:
            return False
        units = n // groups
        try:
            _at(structure, units).check(Shape(units, units, complex=True))
            _at(input_structure, units).check(Shape(units, input_size, complex=True))
        except ValueError:
            return False
        return True

    best, too_large = None, None
    start = 1
    while too_large is None and start <= budget:  # every unit costs a parameter at least
        n = next(filter(exists, range(start, 2 * start)), None)
        if n is not None and parameters(n) > budget:
            too_large = n
        elif n is not None:
            best = n
        start *= 2
    if best is None:
        raise ValueError(f"expected a budget that pays for some layer of this structure, got {budget:,}")
    sizes = list(filter(exists, range(best, too_large or budget + 1)))
    return sizes[bisect.bisect_right(sizes, budget, key=parameters) - 1]


def _at(family: Family | None, n: int) -> Structure:
    if family is None:
        return Dense()
    return family if isinstance(family, Structure) else family(n)
