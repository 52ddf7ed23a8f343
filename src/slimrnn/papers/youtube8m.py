"""Results on YouTube-8M: factorized paper §3.2."""

from __future__ import annotations

from dataclasses import replace

from slimrnn.papers.row import PaperRow
from slimrnn.tasks.youtube8m import YouTube8MTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig

_FACTORIZED = ModelConfig("lstm", structure="block-diagonal", blocks=4, input_structure="block-diagonal", layers=2)
_NETS = {  # net, parameters of its layers, all parameters, the paper's Hit@1 and PERR
    "lstm": (ModelConfig("lstm", 1024, layers=2), 17_309_696, 21_268_246, 0.645, 0.573),
    "factorized-small": (replace(_FACTORIZED, hidden=1024), 4_333_568, 8_292_118, 0.719, 0.604),
    "factorized-big": (replace(_FACTORIZED, hidden=2216), 17_302_528, 25_864_582, 0.809, 0.641),
}

_NET_NOTES = {
    "lstm": "1,024 units as in YouTube-8M's own code; ",
    "factorized-small": "4 blocks as in table 1, the text says 8; input matrices have blocks too (eq. 14); ",
    "factorized-big": "4 blocks as in table 1, the text says 8; with 2,216 units the layers have the LSTM's size; ",
}
_NOTE = (
    "release of 2018, with audio, which the paper does not mention; read-out bias set for 3 labels a video; loss after"
    " the last frame only; batches of 100 are ours, five epochs and learning rates those of YouTube-8M's own code"
)


def _row(net: str) -> PaperRow:
    """Factorized paper §3.2, table 1."""
    model, layers, total, hit, perr = _NETS[net]
    config = Config(
        YouTube8MTask(),
        model,
        OptimConfig(lr=1e-3, clip_norm=1.0, schedule="step", schedule_every=40_000, schedule_factor=0.95),
        updates=195_000,  # five epochs of 3.9 million videos
        batch_size=100,
        valid_size=10_000,
        eval_every=5_000,
        checkpoint_every=1_000,
    )
    name, source, claim = f"youtube-8m-{net}", "factorized §3.2", f"Hit@1 {hit}, PERR {perr}"
    note = f"{total:,} parameters, {layers:,} without the read-out; {_NET_NOTES[net]}{_NOTE}"
    return PaperRow(
        name,
        source,
        claim,
        config,
        score="hit_at_1",
        bound=hit,
        second=("perr", perr),
        direction="at least",
        note=note,
    )


ROWS = tuple(map(_row, _NETS))
