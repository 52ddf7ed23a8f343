"""Sentences for the user on what a reader met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slimrnn._texts import listed


def plural(count: int, noun: str) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def missing_note(values_SD: NDArray[np.float32], names: Sequence[str]) -> list[str]:
    """How many values are missing, and where; nothing where there is none."""
    counts = [int(np.isnan(column).sum()) for column in values_SD.T]
    some = [f"{name} ({count:,})" for name, count in zip(names, counts, strict=True) if count]
    return [f"{plural(sum(counts), 'value')} missing in {listed(some)}"] if some else []
