"""Which events of a log are to be predicted in training, validation and test.

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
GAPS = 32  # kinds of time gaps: none, and powers of two up to 2³⁰ seconds, 34 years


@dataclass(frozen=True, eq=False)
class Windows:
    """Sequences of a split. In sequence s the net reads the events first ... first + steps − 1, numbered as in the log,
    and after each is to say the next; what counts are the answers from step `scored` on."""

    first_S: NDArray[np.int64]
    steps_S: NDArray[np.int64]
    scored_S: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first_S)

    def targets(self) -> Indices:
        """The events to be predicted."""
        starts, ends = self.first_S + self.scored_S + 1, self.first_S + self.steps_S + 1
        return np.concatenate([np.zeros(0, np.int64), *map(np.arange, starts, ends)])


def leave_one_out(log: Interactions, max_length: int) -> dict[str, Windows]:
    """Of each user's events the last is the test, the one before validates, and all before are for training.

    Users with less than three events have no test, and their events are all for training."""
    starts, ends = log.starts[:-1], log.starts[1:]
    held_out = ends - starts >= 3
    return {
        "train": _windows(starts, starts + 1, np.where(held_out, ends - 2, ends), max_length),
        "valid": _windows(starts[held_out], ends[held_out] - 2, ends[held_out] - 1, max_length),
        "test": _windows(starts[held_out], ends[held_out] - 1, ends[held_out], max_length),
    }


def temporal(log: Interactions, max_length: int, valid_share: float, test_share: float) -> dict[str, Windows]:
    """The last share of all events by time is the test, the one before validates; what a user did before is read but
    not scored."""
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
    """For each user: the events from `begin` and before `end` are to be predicted, those from `start` on to be read,
    the last `max_length` of them."""
    some = end > begin
    starts, begin, end = starts[some], begin[some], end[some]
    first = np.maximum(starts, end - 1 - max_length)
    return Windows(first, end - 1 - first, np.maximum(begin - 1 - first, 0))


def train_counts(log: Interactions, windows: Windows) -> NDArray[np.int64]:
    """How often each item is read or predicted in training."""
    read = np.zeros(len(log.items) + 1, dtype=np.int64)
    np.add.at(read, windows.first_S, 1)
    np.add.at(read, windows.first_S + windows.steps_S + 1, -1)
    return np.bincount(log.items[np.cumsum(read)[:-1] > 0], minlength=len(log.item_ids))


def without_seen(scores_PV: Tensor, targets_P: Tensor, events_P: Tensor, log: Interactions) -> Tensor:
    """−inf for what the user took up to the event before the target, but for the target itself."""
    events = events_P.cpu().numpy()
    starts = log.starts[np.searchsorted(log.starts, events, side="right") - 1]
    counts = events + 1 - starts
    rows = np.repeat(np.arange(len(events)), counts)
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    kept = scores_PV.gather(-1, targets_P[:, None])
    masked = scores_PV.clone()
    device = scores_PV.device
    masked[
        torch.from_numpy(rows).to(device), torch.from_numpy(log.items[places].astype(np.int64)).to(device)
    ] = -torch.inf
    return masked.scatter_(-1, targets_P[:, None], kept)


@dataclass(frozen=True, eq=False)
class Histories:
    """The sequences of a split: item, and where there are any page and time gap, of each event; last its number in the
    log, by which the events before it can be found."""

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
        counted_TB = inside_TB & (steps_T1 >= scored_B)
        return Batch(
            torch.from_numpy(inputs_TBF),
            torch.from_numpy(targets_TB),
            torch.from_numpy(counted_TB.astype(np.float32)),
            torch.from_numpy(steps_B),
        )


def gaps_between(times: NDArray[np.float64]) -> NDArray[np.int64]:
    """Kinds of the time gaps before the events of one user: 0 before the first, else 1 + ⌊log₂(1 + seconds)⌋."""
    seconds = np.diff(times)
    kinds = 1 + np.floor(np.log2(1 + np.maximum(seconds, 0))).astype(np.int64)
    return np.concatenate([np.zeros(min(1, len(times)), dtype=np.int64), kinds.clip(max=GAPS - 1)])


@lru_cache(maxsize=4)
def gaps_of(log: Interactions) -> NDArray[np.int64] | None:
    """Of all events; none where there are no times."""
    if log.times is None:
        return None
    kinds = gaps_between(log.times)
    kinds[log.starts[:-1]] = 0
    return kinds
