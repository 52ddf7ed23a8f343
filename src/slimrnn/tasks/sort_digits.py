"""Sort digits: write the symbols of a sequence in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimrnn.tasks.transduction_symbols import RandomSymbolsTask


@dataclass(frozen=True)
class SortDigitsTask(RandomSymbolsTask):
    """Read some digits, then write them in ascending order."""

    name = "sort-digits"
    default_updates = 1500

    def answer(self, source: Sequence[int]) -> Sequence[int]:
        return sorted(source)
