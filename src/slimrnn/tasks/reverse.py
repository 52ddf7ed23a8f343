"""Reverse: write the symbols of a sequence backwards, or copy them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimrnn.tasks.transduction_symbols import RandomSymbolsTask


@dataclass(frozen=True)
class ReverseTask(RandomSymbolsTask):
    """Read some symbols, then write them backwards."""

    copy: bool = False
    """write them in their order instead"""

    name = "reverse"
    default_updates = 3000

    def answer(self, source: Sequence[int]) -> Sequence[int]:
        return source if self.copy else source[::-1]
