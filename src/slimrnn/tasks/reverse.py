"""Reverse: write the symbols of a sequence backwards, or copy them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimrnn.tasks.transduction_symbols import RandomSymbolsTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig


@dataclass(frozen=True)
class ReverseTask(RandomSymbolsTask):
    """Read some symbols, then write them backwards."""

    copy: bool = False
    """write them in their order instead"""

    name = "reverse"

    def answer(self, source: Sequence[int]) -> Sequence[int]:
        return source if self.copy else source[::-1]

    def default_config(self) -> Config:
        return Config(
            self,
            ModelConfig("gru", 128),
            OptimConfig(lr=2e-3, clip_norm=1.0, schedule="cosine"),
            updates=3000,
            batch_size=64,
            eval_every=250,
            stop_at=1.0,
        )
