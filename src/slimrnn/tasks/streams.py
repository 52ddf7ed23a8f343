"""A text as parallel streams, along which the state is carried over.

Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from slimrnn.data.text import Text
from slimrnn.training.task import Batch, Indices


@dataclass(frozen=True, eq=False)
class Streams:
    """Sequence i is the i-th of `count` parts of the text, whose lengths differ by at most one character: the input is
    the previous character (END before the first of the text), the target the next. Shorter parts are padded by a step
    of no weight."""

    text: Text
    count: int

    @property
    def size(self) -> int:
        return self.count

    def fetch(self, indices: Indices) -> Batch:
        total = len(self.text.tokens)
        starts_B, ends_B = indices * total // self.count, (indices + 1) * total // self.count
        places_TB = starts_B + np.arange(-(-total // self.count))[:, None]
        inside_TB = places_TB < ends_B
        before_TB = self.text.tokens[places_TB - 1].astype(np.int64)
        before_TB[places_TB == 0] = self.text.end
        targets_TB = self.text.tokens[np.where(inside_TB, places_TB, 0)].astype(np.int64)
        return Batch(
            torch.from_numpy(before_TB), torch.from_numpy(targets_TB), torch.from_numpy(inside_TB.astype(np.float32))
        )
