"""Pieces of series for forecasting: some steps to read, then steps after each of which a forecast is scored.

An origin is the last step that a forecast knows. Those of training, validation and test come one after the other in
time, and what is forecast from an origin lies in its own part only. Shape suffixes: N windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimrnn.training.task import Indices

MOST = 4000  # windows for training, about: more overlap less


@dataclass(frozen=True, eq=False)
class Windows:
    """N windows: a series, its first step, the steps in all and how many are only read before the first origin."""

    series: Indices  #: (N)
    first: Indices  #: (N)
    steps: Indices  #: (N)
    read: Indices  #: (N)

    def __len__(self) -> int:
        return len(self.series)


def cuts(lengths: NDArray[np.int64], test_share: float, valid_share: float, horizon: int) -> dict[str, Indices]:
    """For each part the first step that it forecasts, (series), and "end"."""
    test = np.maximum(horizon, np.round(test_share * lengths).astype(np.int64))
    valid = np.maximum(horizon, np.round(valid_share * (lengths - test)).astype(np.int64)) if valid_share else 0 * test
    return {"train": 0 * lengths, "valid": lengths - test - valid, "test": lengths - test, "end": lengths}


def origins(parts: dict[str, Indices], split: str, horizon: int, least: int) -> tuple[Indices, Indices]:
    """First and last origin of each series: `least` steps are known, and all steps ahead are in the part."""
    if split == "valid" and (parts["valid"] == parts["test"]).all():  # none is held out
        split = "train"
    ends = {"train": "valid", "valid": "test", "test": "end"}
    return np.maximum(parts[split] - 1, least - 1), parts[ends[split]] - horizon - 1


def windows(first: Indices, last: Indices, context: int, span: int, *, overlap: bool) -> Windows:
    """All origins of all series, `span` at a time, each window after `context` steps or what there is of them. Where
    windows overlap, they begin at so many places that there are about MOST of them."""
    counts = np.maximum(0, last - first + 1)
    hop = max(1, int(counts.sum()) // MOST) if overlap else span
    pieces: list[NDArray[np.int64]] = []
    for series in np.flatnonzero(counts):
        begins = np.arange(first[series], last[series] + 1, hop)
        if overlap:  # the last ones would be short, and the others have their origins
            begins = begins[begins + min(span, int(counts[series])) - 1 <= last[series]]
        ends = np.minimum(begins + span - 1, last[series])
        starts = np.maximum(0, begins - context + 1)
        pieces.append(np.stack([np.full_like(begins, series), starts, ends - starts + 1, begins - starts]))
    table = np.concatenate([np.zeros((4, 0), np.int64), *pieces], 1)
    return Windows(*table)
