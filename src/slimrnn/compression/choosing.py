"""The last choice is by the score: a recurrent net may run away from a small error that is fed back to it.

The weighted error is that of one step on the states of the net as it was. A compressed LSTM of 512 units was seen to
let a cell state grow without bound on some sequences, at a tenth of the parameters and not at a twentieth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from torch import nn

from slimrnn.compression.budget import Budget
from slimrnn.compression.candidates import Candidate
from slimrnn.compression.plan import Plan

PARTS = (1.0, 0.97, 0.94)  # of the budget
DAMPINGS = (None, 1.0)  # of G: the usual one, and one with which rare directions count more


class Chosen(NamedTuple):
    """A plan, what it chose, and the model made of that."""

    plan: Plan
    candidates: list[Candidate]
    model: nn.Module


def choose_by_score(plan: Plan, budget: Budget, score: Callable[[nn.Module], float] | None) -> Chosen:
    """Of some choices that keep the budget, the one with the best score; without a score, the first."""
    tried = _choices(plan, budget)
    first = next(tried)
    if score is None or plan.moments is None or all(candidate.as_it_is for candidate in first.candidates):
        return first
    return min([first, *tried], key=lambda chosen: finite(score(chosen.model)))


def finite(score: float) -> float:
    """A net that ran away, whose score is no number, is worse than all others."""
    return score if math.isfinite(score) else math.inf


def _choices(plan: Plan, budget: Budget) -> Iterator[Chosen]:
    unit, room = budget.unit, budget.of(plan.whole(budget.unit))
    for damping in DAMPINGS:
        one, seen = plan if damping is None else plan.damped(damping), []
        for part in PARTS:
            smaller = replace(budget, amount=part * room, is_share=False)
            if part < 1 and smaller.of(0) < plan.smallest(unit):
                continue
            found = one.choose(budget if part == 1 else smaller)
            if found not in seen:
                seen.append(found)
                yield Chosen(one, found, one.build(found))
