"""Which events of a log are targets in training, validation and test.

Shape suffixes: T time, B sequences, F features of an event, S sequences of a split, P positions, V items.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimrnn.data.interactions import Interactions
from slimrnn.training.task import Batch, Indices

SPLITS = ("train", "valid", "test")
GAPS = 32  # bins of time gaps: none, and powers of two up to 2³⁰ seconds, 34 years


@dataclass(frozen=True, eq=False)
class Windows:
    """Sequences of a split. In sequence s the inputs are the events first ... first + steps − 1 of the log, the target
    of each is the event after it, and steps from `scored` on are scored."""

    first_S: NDArray[np.int64]
    steps_S: NDArray[np.int64]
    scored_S: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first_S)

    def targets(self) -> Indices:
        """The scored target events."""
        starts, ends = self.first_S + self.scored_S + 1, self.first_S + self.steps_S + 1
        return np.concatenate([np.zeros(0, np.int64), *map(np.arange, starts, ends)])


def leave_one_out(log: Interactions, max_length: int) -> dict[str, Windows]:
    """The last event of each user is the test target, the one before the validation target, the rest is for training.

    Users with fewer than three events are in the training set only."""
    starts, ends = log.starts[:-1], log.starts[1:]
    held_out = ends - starts >= 3
    return {
        "train": _windows(starts, starts + 1, np.where(held_out, ends - 2, ends), max_length),
        "valid": _windows(starts[held_out], ends[held_out] - 2, ends[held_out] - 1, max_length),
        "test": _windows(starts[held_out], ends[held_out] - 1, ends[held_out], max_length),
    }


def temporal(log: Interactions, max_length: int, valid_share: float, test_share: float) -> dict[str, Windows]:
    """The latest `test_share` of all events is for the test, `valid_share` before it for validation; a user's earlier
    events are inputs but not scored."""
    assert log.times is not None  # the task refuses logs without
    ordered = np.sort(log.times)
    places = [int(len(ordered) * (1 - test_share - valid_share)), int(len(ordered) * (1 - test_share))]
    starts, ends = log.starts[:-1], log.starts[1:]
    cuts = [starts, *(_first_at(log, ordered[min(place, len(ordered) - 1)]) for place in places), ends]
    return {
        split: _windows(starts, np.maximum(begin, starts + 1), end, max_length)
        for split, begin, end in zip(SPLITS, cuts[:-1], cuts[1:], strict=True)
    }


def _first_at(log: Interactions, time: float) -> NDArray[np.int64]:
    """Each user's first event at that time or later."""
    assert log.times is not None
    earlier = np.concatenate([[0], np.cumsum(log.times < time)])
    first: NDArray[np.int64] = log.starts[:-1] + (earlier[log.starts[1:]] - earlier[log.starts[:-1]])
    return first


def _windows(starts: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64], max_length: int) -> Windows:
    """Per user: targets are the events from `begin` to before `end`, inputs those from `start` on, at most the last
    `max_length`."""
    has_targets = end > begin
    starts, begin, end = starts[has_targets], begin[has_targets], end[has_targets]
    first = np.maximum(starts, end - 1 - max_length)
    return Windows(first, end - 1 - first, np.maximum(begin - 1 - first, 0))


def train_counts(log: Interactions, windows: Windows) -> NDArray[np.int64]:
    """Frequency of each item in the training sequences."""
    read = np.zeros(len(log.items) + 1, dtype=np.int64)
    np.add.at(read, windows.first_S, 1)
    np.add.at(read, windows.first_S + windows.steps_S + 1, -1)
    return np.bincount(log.items[np.cumsum(read)[:-1] > 0], minlength=len(log.item_ids))


def without_seen(scores_PV: Tensor, targets_P: Tensor, events_P: Tensor, log: Interactions) -> Tensor:
    """Set the scores of items in the user's history to −inf, except that of the target."""
    events = events_P.cpu().numpy()
    starts = log.starts[np.searchsorted(log.starts, events, side="right") - 1]
    counts = events + 1 - starts
    rows = np.repeat(np.arange(len(events)), counts)
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    target_scores = scores_PV.gather(-1, targets_P[:, None])
    masked = scores_PV.clone()
    device = scores_PV.device
    masked[
        torch.from_numpy(rows).to(device), torch.from_numpy(log.items[places].astype(np.int64)).to(device)
    ] = -torch.inf
    return masked.scatter_(-1, targets_P[:, None], target_scores)


@dataclass(frozen=True, eq=False)
class Histories:
    """The sequences of a split. Features of an event: item, page and time gap if there are any, and last its index in
    the log, which gives access to the events before it."""

    log: Interactions
    windows: Windows
    gaps: NDArray[np.int64] | None

    @property
    def size(self) -> int:
        return len(self.windows)

    def lengths(self, indices: Indices) -> Indices:
        """Steps of each sequence."""
        return self.windows.steps_S[indices]

    def fetch(self, indices: Indices) -> Batch:
        windows, log = self.windows, self.log
        first_B, steps_B, scored_B = (a[indices] for a in (windows.first_S, windows.steps_S, windows.scored_S))
        steps_T1 = np.arange(steps_B.max(initial=1))[:, None]
        inside_TB = steps_T1 < steps_B
        events_TB = np.where(inside_TB, first_B + steps_T1, 0)
        features = [values[events_TB] for values in (log.items, log.pages, self.gaps) if values is not None]
        inputs_TBF = np.stack([*features, events_TB], -1).astype(np.int64)
        targets_TB = np.where(inside_TB, log.items[np.where(inside_TB, events_TB + 1, 0)], 0).astype(np.int64)
        scored_TB = inside_TB & (steps_T1 >= scored_B)
        return Batch(
            torch.from_numpy(inputs_TBF),
            torch.from_numpy(targets_TB),
            torch.from_numpy(scored_TB.astype(np.float32)),
            torch.from_numpy(steps_B),
        )


def gaps_between(times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Time gaps before the events of a user in bins: 0 for the first event, else 1 + ⌊log₂(1 + seconds)⌋."""
    seconds = np.diff(times)
    bins = 1 + np.floor(np.log2(1 + np.maximum(seconds, 0))).astype(np.int64)
    return np.concatenate([np.zeros(min(1, len(times)), dtype=np.int64), bins.clip(max=GAPS - 1)])


@lru_cache(maxsize=4)
def gaps_of(log: Interactions) -> NDArray[np.int64] | None:
    """Binned time gaps of all events, or None without times."""
    if log.times is None:
        return None
    bins = gaps_between(log.times)
    bins[log.starts[:-1]] = 0
    return bins
