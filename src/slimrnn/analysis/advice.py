"""The thresholds of the memory doctor are now in `slimrnn.analysis.doctor.advice`."""

from __future__ import annotations

from slimrnn._moved import moved

THRESHOLDS = (
    "REMEMBERED",
    "SHORT_MEMORY",
    "MEDIUM_MEMORY",
    "GROWN",
    "EXPLODED",
    "CLOSED",
    "OPEN",
    "SATURATED",
    "OFF",
    "NEARLY_UNITARY",
    "DRIFTED",
    "SINGULAR",
    "EMPTY",
    "WASTEFUL",
    "HARDLY_TRAINED",
)

__getattr__ = moved(__name__, dict.fromkeys(THRESHOLDS, "slimrnn.analysis.doctor.advice"))
