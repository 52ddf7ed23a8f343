"""Back-propagation through time is now in `slimrnn.analysis.lecture.bptt`."""

from __future__ import annotations

from slimrnn._moved import moved

__getattr__ = moved(__name__, dict.fromkeys(("BPTT", "elman_bptt", "layer_bptt"), "slimrnn.analysis.lecture.bptt"))
