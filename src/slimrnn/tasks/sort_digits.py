"""Sort a sequence of symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimrnn.tasks.transduction_symbols import RandomSymbolsTask


@dataclass(frozen=True)
class SortDigitsTask(RandomSymbolsTask):
    """Sort a sequence of digits in ascending order."""

    name = "sort-digits"
    default_updates = 1500

    def answer(self, source: Sequence[int]) -> Sequence[int]:
        return sorted(source)
