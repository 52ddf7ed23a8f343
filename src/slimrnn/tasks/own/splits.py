"""Training, validation and test parts that share no sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.training import random
from slimrnn.training.task import Indices

SPLITS = ("train", "valid", "test")
LEVELS = 10  # of numbers, where these are the labels: each level is shared out in the same way


def given_parts(parts: Sequence[str]) -> dict[str, Indices]:
    """The sequences of each part that a column names."""
    names = np.array(parts)
    return {split: np.flatnonzero(names == split) for split in SPLITS}


def held_out(candidates: Indices, labels: NDArray[Any] | None, share: float, seed: int, name: str) -> Indices:
    """About a share of the candidates, of each label alike; every label keeps one that is not held out.

    `labels` has one for each candidate. The result depends on the seed, the name of the part and the order of the
    candidates only."""
    order = random.permutation(random.key(seed, "own", name), len(candidates))
    groups = np.zeros(len(candidates), dtype=np.int64) if labels is None else _groups(labels)
    # One queue of all candidates, group after group; every (1 / share)-th is taken, so that rounding does not add up.
    queue = order[np.argsort(groups[order], kind="stable")]
    taken = np.diff(np.floor(np.arange(len(queue) + 1) * share + 0.5)) > 0
    chosen = queue[taken]
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        if np.isin(members, chosen).all():
            chosen = chosen[chosen != members[0]]
    return np.sort(candidates[chosen])


def cut_in_time(sequences: Sequences, valid_share: float, test_share: float) -> Sequences:
    """Each sequence as three, of which the first is for training, the second for validation and the last for the test;
    those too short for that are for training. No values are copied."""
    starts, ids, parts = [0], [], []
    for name, begin, end in zip(sequences.ids, sequences.starts, sequences.starts[1:], strict=False):
        steps = int(end - begin)
        test = round(test_share * steps)
        valid = round(valid_share * (steps - test))
        sizes = (steps - test - valid, valid, test)
        enough = min(sizes[0], test) > 0 and (valid > 0 or not valid_share)
        for part, size in zip(SPLITS, sizes if enough else (steps, 0, 0), strict=True):
            if size:
                starts.append(starts[-1] + size)
                ids.append(f"{name}, {part}")
                parts.append(part)
    return replace(sequences, starts=np.array(starts), ids=tuple(ids), parts=tuple(parts))


def check_not_empty(parts: dict[str, Indices], count: int) -> None:
    """Every part needs a sequence."""
    for split, which in parts.items():
        if len(which) == 0:
            sizes = ", ".join(f"{len(indices):,} {name}" for name, indices in parts.items())
            raise DataError(
                f"expected sequences in every part, got none for {split} ({sizes} of {count:,}): bring more, or name "
                "the parts in a column (--split) or a file of its own (--test-file)"
            )


def _groups(labels: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each label; for numbers, a level of their ranks."""
    if np.issubdtype(labels.dtype, np.floating):
        ranks = np.argsort(np.argsort(labels, kind="stable"), kind="stable")
        return (ranks * min(LEVELS, len(labels)) // max(1, len(labels))).astype(np.int64)
    return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)
