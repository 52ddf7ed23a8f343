"""Results of recommenders: factorized paper §3.3, on MovieLens as the paper's data is private."""

from __future__ import annotations

from dataclasses import replace

from slimrnn.papers.row import PaperRow
from slimrnn.tasks.recommend import RecommendTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig

_EPOCH = 95  # updates: 6,040 users in batches of 64
_NOTE = (
    "the paper's data is private: this is MovieLens 1M, each user's last event, so only the order of the nets can be"
    " compared, not their figures; 20,000 negatives are all 3,416 items here; sizes, learning rate and length of"
    " training are ours"
)
_PARAMETERS = {"gru": 523_096, "factorized": 519_512, "context-switching": 528_988}


def _rows() -> tuple[PaperRow, ...]:
    """Table 2. The factorized net has twice the state for about as many parameters, more of them in the
    output projection."""
    config = Config(
        RecommendTask(),
        ModelConfig("gru", 128),
        OptimConfig("adagrad", lr=0.1, clip_norm=1.0),
        updates=20 * _EPOCH,
        batch_size=64,
        valid_size=10_000,
        eval_every=2 * _EPOCH,
        checkpoint_every=_EPOCH,
    )
    blocks = ModelConfig("gru", 256, "block-diagonal", blocks=4, input_structure="block-diagonal")
    source, claim = "factorized §3.3", "MAP@20 0.117"
    dense = PaperRow(
        "recommendation-gru", source, claim, config, score="map_at_20", direction="at least", note=_note("gru")
    )
    factorized = replace(
        dense,
        name="recommendation-factorized",
        claim="MAP@20 0.122, more than the dense net",
        config=replace(config, model=blocks),
        compared_with=dense.name,
        note=_note("factorized"),
    )
    switching = replace(
        factorized,
        name="recommendation-context-switching",
        claim="MAP@20 0.126, more than the factorized net",
        config=replace(config, model=replace(blocks, context_switching="outputs")),
        compared_with=factorized.name,
        note=_note("context-switching"),
    )
    return dense, factorized, switching


def _note(net: str) -> str:
    return f"{_PARAMETERS[net]:,} parameters; {_NOTE}"


ROWS = _rows()
