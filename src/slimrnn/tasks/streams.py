"""A text as parallel streams, through which a net carries its state.

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
    """Sequence i of n is the i-th of n parts of the text, equal but for one character: the net reads the character
    before each (END before the first of the text) and is to give it. One with a character less ends with a step of no
    weight."""

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
