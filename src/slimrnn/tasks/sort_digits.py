"""Sort digits: write the symbols of a sequence in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimrnn.tasks.transduction_symbols import RandomSymbolsTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig


@dataclass(frozen=True)
class SortDigitsTask(RandomSymbolsTask):
    """Read some digits, then write them in ascending order."""

    name = "sort-digits"

    def answer(self, source: Sequence[int]) -> Sequence[int]:
        return sorted(source)

    def default_config(self) -> Config:
        return Config(
            self,
            ModelConfig("gru", 128),
            OptimConfig(lr=2e-3, clip_norm=1.0, schedule="cosine"),
            updates=1500,
            batch_size=64,
            eval_every=250,
            stop_at=1.0,
        )
