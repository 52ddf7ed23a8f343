"""How fast to fine-tune: the more was taken away, the higher the rate."""

from __future__ import annotations

import itertools
import math

# Share of the parameters that is left, and Adam's peak rate: at half the parameters a high rate only does harm, at a
# twentieth the net has to be learned again in part.
RATES = ((0.5, 1e-3), (0.2, 3e-3), (0.1, 5e-3), (0.05, 6e-3))


def peak_rate(share: float) -> float:
    """Interpolated in logarithms, and constant beyond the ends."""
    if share >= RATES[0][0]:
        return RATES[0][1]
    for (high, above), (low, below) in itertools.pairwise(RATES):
        if share >= low:
            at = math.log(share / low) / math.log(high / low)
            return math.exp(at * math.log(above) + (1 - at) * math.log(below))
    return RATES[-1][1]
