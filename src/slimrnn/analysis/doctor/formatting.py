"""Numbers as they stand in sentences."""

from __future__ import annotations

import math


def percent(share: float) -> str:
    """ "71 %"; what is not all or nothing is not called so."""
    shown = f"{100 * share:.0f}"
    if shown in ("0", "100") and share not in (0, 1):
        return f"{100 * share:.1g} %" if share < 0.5 else "over 99 %"
    return f"{shown} %"


def steps(number: float) -> str:
    """ "5 steps", "12.3 steps"."""
    shown = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
    return f"{shown} step{'' if shown == '1' else 's'}"


def tenfold(factor: float) -> str:
    """How often so much per step makes a factor of ten, whichever way."""
    if factor == 0:
        return "to nothing in one step"
    return f"tenfold every {steps(math.log(10) / abs(math.log(factor)))}"


def from_unitary(drift: float) -> str:
    """ "0.26 from unitary"; what rounding may be is not told in digits."""
    return "unitary up to rounding" if drift < 1e-5 else f"{drift:.2g} from unitary"
