"""Results of recommenders: factorized paper §3.3, on MovieLens as the paper's data is private."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from slimrnn.papers.row import PaperRow, by_our_recipe
from slimrnn.tasks.recommend import RecommendTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig

_EPOCH = 95  # updates: 6,040 users in batches of 64
_PRIVATE = "the paper's data is private, so only the order of the nets can be compared, not their figures: this is"
_OURS = "sizes, learning rate, batches of 64 users, clipping and length of training are ours"
_LEAVE_ONE_OUT = f"{_PRIVATE} MovieLens 1M, each user's last event; 20,000 negatives are all 3,416 items here; {_OURS}"
_TEMPORAL = (
    f"{_PRIVATE} MovieLens latest-small, its last tenth of events by time, as the sequences of MovieLens 1M have no"
    " times; the time since the event before is an input; 1,000 negatives of 9,724 items are"
    f" drawn for every update; {_OURS}"
)
_PARAMETERS = {"gru": 523_096, "factorized": 519_512, "context-switching": 528_988}
_TEMPORAL_PARAMETERS = {"gru": 1_338_876, "factorized": 1_335_292, "context-switching": 1_344_768}
_OPTIM = OptimConfig("adagrad", lr=0.05, clip_norm=1.0)
_BLOCKS = ModelConfig("gru", 256, "block-diagonal", blocks=4, input_structure="block-diagonal")


def _rows(prefix: str, config: Config, note: str, parameters: dict[str, int]) -> list[PaperRow]:
    """Table 2. The factorized net has twice the state for about as many parameters, more of them in the output
    projection."""
    source, claim = "factorized §3.3", "MAP@20 0.117"
    dense = PaperRow(f"{prefix}-gru", source, claim, config, score="map_at_20", direction="at least")
    factorized = replace(
        dense,
        name=f"{prefix}-factorized",
        claim="MAP@20 0.122, more than the dense net",
        config=replace(config, model=_BLOCKS),
        compared_with=dense.name,
    )
    switching = replace(
        factorized,
        name=f"{prefix}-context-switching",
        claim="MAP@20 0.126, more than the factorized net",
        config=replace(config, model=replace(_BLOCKS, context_switching="outputs")),
        compared_with=factorized.name,
    )
    rows = {"gru": dense, "factorized": factorized, "context-switching": switching}
    return [replace(row, note=f"{parameters[net]:,} parameters; {note}") for net, row in rows.items()]


def _leave_one_out() -> list[PaperRow]:
    config = Config(
        RecommendTask(),
        ModelConfig("gru", 128),
        _OPTIM,
        updates=20 * _EPOCH,
        batch_size=64,
        valid_size=10_000,
        eval_every=2 * _EPOCH,
        checkpoint_every=_EPOCH,
    )
    return _rows("recommendation", config, _LEAVE_ONE_OUT, _PARAMETERS)


def _temporal() -> list[PaperRow]:
    """The paper's split, its time inputs and negatives that are sampled; and the other places of the masks, as the
    paper does not say which it has."""
    config = Config(
        RecommendTask("ml-latest-small", split="temporal", negatives=1_000),
        ModelConfig("gru", 128),
        _OPTIM,
        updates=600,
        batch_size=64,
        valid_size=10_000,
        eval_every=50,
        checkpoint_every=100,
    )
    rows = _rows("recommendation-temporal", config, _TEMPORAL, _TEMPORAL_PARAMETERS)
    switching = rows[-1]
    places: dict[Literal["inputs", "both"], str] = {"inputs": "the inputs", "both": "inputs and outputs"}
    for on, words in places.items():
        masked = replace(switching.config, model=replace(switching.config.model, context_switching=on))
        rows.append(
            replace(by_our_recipe(switching, masked, switching.note, on), claim=f"masks on {words} of the blocks")
        )
    return rows


ROWS = (*_leave_one_out(), *_temporal())
