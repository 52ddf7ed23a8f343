"""Reverse a sequence of symbols, or copy it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimrnn.tasks.transduction_symbols import RandomSymbolsTask


@dataclass(frozen=True)
class ReverseTask(RandomSymbolsTask):
    """Reverse a sequence of symbols."""

    copy: bool = False
    """copy the sequence instead"""

    name = "reverse"
    default_updates = 3000

    def answer(self, source: Sequence[int]) -> Sequence[int]:
        return source if self.copy else source[::-1]
