"""Several steps of the data as one step of the net.

A recurrent net on 500 single numbers sees little in each, and its gradients have a long way. In frames of ten numbers
it has 50 steps to make, each of which shows the shape of the curve. Frames overlap by half.

Shape suffixes: T steps, F frames, B sequences, D columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

OVERLAP = 2  # a frame has the steps of so many strides


def width(frame: int) -> int:
    """Steps that a frame shows."""
    return 1 if frame == 1 else OVERLAP * frame


def count(lengths: NDArray[np.int64], frame: int) -> NDArray[np.int64]:
    """Frames of sequences of so many steps."""
    return -(-lengths // frame)


def framed(values_TBD: NDArray[np.float32], frame: int) -> NDArray[np.float32]:
    """(T, B, D) to (F, B, width · D): frame i begins at step i · frame. What a frame has beyond the last step repeats
    it, so sequences of a batch that end before have to go on with their last step."""
    if frame == 1:
        return values_TBD
    steps = len(values_TBD)
    frames = -(-steps // frame)
    places = np.minimum(np.arange(frames)[:, None] * frame + np.arange(width(frame)), steps - 1)
    shown = values_TBD[places].transpose(0, 2, 1, 3)
    return np.ascontiguousarray(shown).reshape(frames, values_TBD.shape[1], -1)
