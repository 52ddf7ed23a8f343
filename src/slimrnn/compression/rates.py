"""How fast to fine-tune: the more was taken away, the higher the rate."""

from __future__ import annotations

import itertools
import math

# Share of the parameters that is left, and the peak rate as a multiple of the one that the dense net was trained with:
# at half the parameters a high rate only does harm, at a twentieth the net has to be learned again in part.
FACTORS = ((0.5, 0.25), (0.2, 0.5), (0.1, 1.0), (0.05, 1.5))


def rate_factor(share: float) -> float:
    """Interpolated in logarithms, and constant beyond the ends."""
    if share >= FACTORS[0][0]:
        return FACTORS[0][1]
    for (high, above), (low, below) in itertools.pairwise(FACTORS):
        if share >= low:
            at = math.log(share / low) / math.log(high / low)
            return math.exp(at * math.log(above) + (1 - at) * math.log(below))
    return FACTORS[-1][1]
