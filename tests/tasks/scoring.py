"""What the suites of the tasks share."""

from __future__ import annotations

from slimrnn.training import Score


def value(score: Score) -> float:
    """The mean that a score stands for."""
    return float(score.total / score.weight)
