"""Sentences of a text as independent sequences.

Shape suffixes: T time, B sequences, N sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from slimrnn.data.text import Text
from slimrnn.training.task import Batch, Indices


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sequence i is sentence i: the input is END and all characters but the last, the target all characters. Padding
    has no weight."""

    text: Text
    starts_N: NDArray[np.int64]
    lengths_N: NDArray[np.int64]

    @classmethod
    def of(cls, text: Text, max_length: int | None = None) -> Sentences:
        """All sentences, or those of at most `max_length` characters."""
        starts, lengths = text.sentences()
        selected = slice(None) if max_length is None else lengths <= max_length
        return cls(text, starts[selected], lengths[selected])

    @property
    def size(self) -> int:
        return len(self.starts_N)

    def lengths(self, indices: Indices) -> Indices:
        """Characters of each sentence."""
        return self.lengths_N[indices]

    def fetch(self, indices: Indices) -> Batch:
        starts_B, lengths_B = self.starts_N[indices], self.lengths_N[indices]
        steps_T1 = np.arange(lengths_B.max(initial=1))[:, None]
        inside_TB = steps_T1 < lengths_B
        places_TB = np.where(inside_TB, starts_B + steps_T1, 0)
        targets_TB = np.where(inside_TB, self.text.tokens[places_TB], self.text.end).astype(np.int64)
        inputs_TB = np.vstack([np.full((1, len(indices)), self.text.end), targets_TB[:-1]])
        return Batch(
            torch.from_numpy(inputs_TB),
            torch.from_numpy(targets_TB),
            torch.from_numpy(inside_TB.astype(np.float32)),
            torch.from_numpy(lengths_B),
        )
