"""Something that a diagnosis has found, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["problem", "hint", "fine"]


@dataclass(frozen=True)
class Finding:
    """What was seen with its numbers, what to do, and why; `advice` is empty where nothing is to be done."""

    severity: Severity  #: problem: it limits the net; hint: it may; fine: good to know
    layer: str  #: LayerView.name
    seen: str
    advice: str
    reason: str

    def __str__(self) -> str:
        advice = f"{self.advice} " if self.advice else ""
        return f"{self.layer}: {self.seen}. {advice}({self.reason})"
