"""The training engine beside a bare torch loop on the same batches."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from torch.nn.utils import clip_grad_norm_

from slimrnn.tasks import AddingTask
from slimrnn.training import Config, ModelConfig, OptimConfig, Run, train
from slimrnn.training.batches import Batches
from slimrnn.training.checks import build_model
from slimrnn.training.optim import build_optimizer

SIZES = ((30, 16, 400), (750, 128, 40))  # steps, units, updates


def settings(length: int, hidden: int, updates: int) -> Config:
    """No evaluation or checkpoint on the way but the first and the last."""
    return Config(
        AddingTask(length),
        ModelConfig("gru", hidden, "low-rank", rank=hidden // 5, reset="before"),
        OptimConfig("adam", clip_norm=1.0),
        updates=updates,
        eval_every=updates,
        checkpoint_every=updates,
        valid_size=20,
        test_size=20,
        tensorboard=False,
    )


def with_engine(config: Config) -> float:
    """Seconds per update."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "run"
        train(replace(config, out=out), quiet=True)
        return float(Run(out).record["timings"]["training"]) / config.updates


def in_a_bare_loop(config: Config) -> float:
    """Seconds per update."""
    model, task = build_model(config), config.task
    optimizer = build_optimizer(model, config.optim)
    batches = Batches(task.samples("train", config.seed), config.batch_size, updates=config.updates)
    start = time.perf_counter()
    for batch in batches:
        output, _ = model(batch.inputs)
        total, weight = task.scores(output, batch)["loss"]
        optimizer.zero_grad()
        (total / weight).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return (time.perf_counter() - start) / config.updates
