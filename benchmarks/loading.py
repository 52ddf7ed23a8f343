"""What making batches costs beside training on them, for the papers' settings on real data."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from slimrnn.data import DataError
from slimrnn.papers import find_row
from slimrnn.tasks import YouTube8MTask
from slimrnn.training import Batch, Config, ModelConfig, OptimConfig
from slimrnn.training.batches import Batches
from slimrnn.training.checks import build_model
from slimrnn.training.optim import build_optimizer, clip_gradients_, gradient_norm

ROWS = (
    "adding-750-lr-gru",
    "permuted-mnist-lrd-gru-128-24",
    "highway-mnist-lr",
    "ptb-lrd-gru-1000-64",
    "timit-lstm",
    "recommendation-gru",
)


@dataclass(frozen=True)
class Loading:
    """Seconds until the first batch is there, per batch after it, and per update on one."""

    ready: float
    batch: float
    update: float


def settings() -> dict[str, Callable[[], Config]]:
    """Made when asked for: some look at the data that is there."""
    found: dict[str, Callable[[], Config]] = {name: lambda name=name: _of_row(name) for name in ROWS}  # type: ignore[misc]
    return found | {"youtube8m, whole videos": _videos}


def measure(config: Config, seconds: float) -> Loading | None:
    """None where the data is not there."""
    start = time.perf_counter()
    try:
        batches = iter(_batches(config))
        first = next(batches)
    except DataError:
        return None
    ready = time.perf_counter() - start
    update = _updates(config)
    update(first)
    loading, training, count, began = 0.0, 0.0, 0, time.perf_counter()
    while count < 3 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        batch = next(batches)
        middle = time.perf_counter()
        update(batch)
        loading += middle - start
        training += time.perf_counter() - middle
        count += 1
    return Loading(ready, loading / count, training / count)


def _of_row(name: str) -> Config:
    config = find_row(name).config
    assert config is not None
    return config


def _videos() -> Config:
    return Config(YouTube8MTask(level="video"), ModelConfig("lstm", 512), OptimConfig(clip_norm=1.0), batch_size=100)


def _batches(config: Config) -> Any:
    config = replace(config, updates=10**9)
    samples = config.task.samples("train", config.seed)
    return islice(Batches(samples, config.batch_size, updates=config.updates, bptt=config.bptt), config.updates)


def _updates(config: Config) -> Callable[[Batch], None]:
    model = build_model(config)
    optimizer = build_optimizer(model, config.optim)
    parameters = [p for p in model.parameters() if p.requires_grad]

    def update(batch: Batch) -> None:
        outcome, _ = config.task.run(model, batch)
        total, weight = outcome.scores["loss"]
        optimizer.zero_grad()
        (total / weight).backward()
        clip_gradients_(parameters, gradient_norm([p.grad for p in parameters if p.grad is not None]), config.optim)
        optimizer.step()

    return update
