"""MemoryLog: it tells, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

from slimrnn.tasks import AddingTask, ReverseTask
from slimrnn.training import Config, MemoryLog, ModelConfig, SequenceModule, train

UPDATES = 6


class Kept(Logger):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int | None, dict[str, float]]] = []

    @property
    def name(self) -> str:
        return "kept"

    @property
    def version(self) -> int:
        return 0

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        return

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        if any(name.startswith("memory/") for name in metrics):
            self.rows.append((step, dict(metrics)))


class Said(Callback):
    """Keeps what a module has to say."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        assert isinstance(module, SequenceModule)
        module.say = self.lines.append


def fit(callbacks: Sequence[Callback], model: ModelConfig | None = None) -> tuple[SequenceModule, Kept]:
    """A net that draws random numbers in training, trained for a few updates."""
    model = model or ModelConfig(cell="gru", hidden=5, layers=2, dropout=0.5)
    torch.manual_seed(0)
    module = SequenceModule(Config(AddingTask(length=20), model, updates=UPDATES, batch_size=4))
    logger = Kept()
    trainer = Trainer(
        max_steps=UPDATES,
        accelerator="cpu",
        callbacks=list(callbacks),
        logger=logger,
        limit_val_batches=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer.fit(module)
    return module, logger


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "ignore::UserWarning:lightning")
def test_every_so_many_updates_reach_and_radii_are_logged() -> None:
    _, logger = fit([MemoryLog(every=2)])
    assert [step for step, _ in logger.rows] == [2, 4, 6]
    names = {f"memory/rnn.l{layer}/{what}" for layer in (0, 1) for what in ("length", "per_step", "radius/r")}
    for _, row in logger.rows:
        assert names <= set(row)
        assert all(math.isfinite(value) and value > 0 for value in row.values())
        assert row["memory/rnn.l0/length"] <= 20


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "ignore::UserWarning:lightning")
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_training_is_the_same_to_the_bit(cell: str) -> None:
    model = ModelConfig(cell=cell, hidden=5, layers=2, dropout=0.5)
    (plain, _), (watched, _) = fit([], model), fit([MemoryLog(every=1)], model)
    expected, found = plain.state_dict(), watched.state_dict()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None and other.grad is not None:
            assert torch.equal(one.grad, other.grad)


def test_in_our_loop_it_logs_to_tensorboard_and_changes_nothing(tmp_path: Path) -> None:
    model = ModelConfig("gru", 5, layers=2, dropout=0.5)
    config = Config(
        AddingTask(length=20), model, updates=6, batch_size=4, valid_size=4, test_size=4, out=tmp_path / "a"
    )
    watched = train(config, quiet=True, callbacks=[MemoryLog(every=2)])
    board = EventAccumulator(str(tmp_path / "a" / "tensorboard")).Reload()
    lengths = board.Scalars("memory/rnn.l0/length")
    assert [event.step for event in lengths] == [2, 4, 6]
    assert all(0 < event.value <= 20 for event in lengths)
    assert watched.final == train(replace(config, out=tmp_path / "b"), quiet=True).final


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "ignore::UserWarning:lightning")
def test_a_net_that_is_not_finite_is_said_and_training_goes_on() -> None:
    class Spoil(Callback):
        def on_train_batch_end(self, trainer: Trainer, module: LightningModule, *_: Any) -> None:
            if trainer.global_step == 3:
                with torch.no_grad():
                    next(module.parameters()).fill_(math.nan)

    module, logger = fit([Spoil(), said := Said(), MemoryLog(every=1)])
    assert [step for step, _ in logger.rows] == [1, 2, 4, 5, 6]
    assert said.lines[0].startswith("no memory is logged after update 3: expected states that stay finite")
    assert len(module.recoveries) == 1


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "ignore::UserWarning:lightning")
def test_the_measured_memory_follows_the_gates() -> None:
    lengths = []
    for bias in (0.0, 3.0):
        module, _ = fit([], ModelConfig(cell="gru", hidden=5, update_bias=bias))
        lengths.append(MemoryLog().measure(module.model, torch.rand(60, 2, 2))["memory/rnn.l0/length"])
    assert lengths[1] > 2 * lengths[0]


def test_of_an_encoder_decoder_the_encoder_is_looked_at() -> None:
    task = ReverseTask()
    module, batch = SequenceModule(task.default_config()), task.samples("train", 0).fetch(np.arange(6))
    found = MemoryLog(steps=5).measure(module.model, batch.inputs, batch.lengths)
    assert 0 < found["memory/core.l0/length"] <= 5


def test_bad_settings_and_modules_are_refused() -> None:
    with pytest.raises(ValueError, match="expected every to be at least 1, got 0"):
        MemoryLog(every=0)

    with pytest.raises(TypeError, match="expected a SequenceModule, got LightningModule"):
        MemoryLog().on_fit_start(Trainer(logger=False, enable_checkpointing=False), LightningModule())
