"""Results on word copy: factorized paper §3.1."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from slimrnn.papers.row import PaperRow
from slimrnn.tasks.word_copy import WordCopyTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig


def _dense_and_factorized(repeats: int, cell: Literal["lstm", "gru"]) -> list[PaperRow]:
    """A dense net, and a factorized one with as many parameters, which gives it twice the state."""
    config = Config(
        WordCopyTask(repeats), ModelConfig(cell, 64, layers=2), OptimConfig("rmsprop", clip_norm=1.0), updates=5_000
    )
    blocks = ModelConfig(cell, 128, "block-diagonal", blocks=4, input_structure="block-diagonal", layers=2)
    dense = PaperRow(
        f"word-copy-{repeats}-{cell}-dense",
        "factorized §3.1",
        "higher cross-entropy than factorized",
        config,
        note="the paper gives neither sizes nor learning rates: 64 dense units, RMSprop at 1e-3, batches of 20 and"
        " clipping of the gradient norm at 1 are ours",
    )
    factorized = replace(
        dense,
        name=f"word-copy-{repeats}-{cell}-factorized",
        claim="lower cross-entropy than dense, with equal parameters",
        config=replace(config, model=blocks),
        compared_with=dense.name,
    )
    return [dense, factorized]


ROWS = tuple(
    row for repeats in (4, 8, 16, 32) for cell in ("lstm", "gru") for row in _dense_and_factorized(repeats, cell)
)
