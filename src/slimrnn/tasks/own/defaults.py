"""Settings that suit the data: size, rate, number of updates. They were chosen on training parts, see own-data.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slimrnn.training.config import Config, ModelConfig, OptimConfig

if TYPE_CHECKING:
    from slimrnn.tasks.own.classify import ClassifyTask

STEPS = 50  # of the net, about, for a sequence of the median length
FEW = 500  # training sequences below which noise and dropout help


def one_output_config(task: ClassifyTask, targets: str, train: int) -> tuple[Config, str]:
    """For one answer per sequence."""
    lengths = task.sequences.lengths
    typical, columns = int(np.median(lengths)), len(task.sequences.columns)
    frame = task.frame if task.frame > 1 else max(1, round(typical / STEPS))
    hidden = 64 if train < 2000 else 128
    few = train < FEW
    batch = int(np.clip(train // 8, 8, 64))
    updates = int(np.clip(60 * train // batch, 600, 3000))
    noise = task.noise or (0.1 if few else 0.0)
    every = max(10, updates // 20)
    config = Config(
        task.changed(frame=frame, noise=noise),
        ModelConfig("gru", hidden, bidirectional=True, pooling="mean", readout_dropout=0.2 if few else 0.0),
        OptimConfig("adamw", 5e-3, weight_decay=1e-2, clip_norm=1.0, schedule="cosine"),
        updates=updates,
        batch_size=batch,
        valid_size=1_000_000,
        eval_every=every,
        checkpoint_every=every,
        patience=10,
    )
    return config, f"{train} {targets} {typical} {columns}"
