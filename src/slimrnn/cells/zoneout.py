"""Zoneout (Krueger et al. 2017): at random, units keep their state for a step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from slimrnn.ops.reference import State


def zoned(rates: tuple[float, ...], before: State, after: State, noise: Callable[[int], Tensor] | None) -> State:
    """s_t = z ⊙ s_{t−1} + (1 − z) ⊙ after, where z is 1 with the rate of the state, anew for every step and unit.

    `noise` gives uniform numbers for the state of that number; without it, the expectation of s_t."""
    found = []
    for number, (rate, old, new) in enumerate(zip(rates, before, after, strict=True)):
        if rate == 0:
            found.append(new)
        elif noise is None:
            found.append(new + rate * (old - new))
        else:
            found.append(torch.where(noise(number) < rate, old, new))
    return tuple(found)
