"""SequenceModule in a Trainer of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from training_cases import EchoTask, tiny

from slimrnn.training import Config, OptimConfig, SequenceModule, train
from slimrnn.training.run_files import read_tensors


@pytest.fixture(autouse=True)
def _lightnings_own_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated")
        warnings.filterwarnings("ignore", ".*does not have many workers")
        yield


def _trainer(tmp_path: Path, **options: Any) -> lightning.Trainer:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    return lightning.Trainer(default_root_dir=tmp_path, accelerator="cpu", devices=1, **{**quiet, **options})


def test_own_trainer_trains_as_the_engine_does(tmp_path: Path) -> None:
    config = tiny(tmp_path / "run", optim=OptimConfig("rmsprop", 1e-2, clip_value=0.1, schedule="cosine"), bptt=5)
    module = SequenceModule(config)
    _trainer(tmp_path, max_steps=40, enable_checkpointing=False).fit(module)
    final, _ = read_tensors(train(config, quiet=True).directory / "final.safetensors", "weights")
    assert all(torch.equal(weight, final[name]) for name, weight in module.model.state_dict().items())


def test_validation_is_there_for_callbacks(tmp_path: Path) -> None:
    """Lightning's own checkpoint, logger and rate monitor see what they expect."""
    best = ModelCheckpoint(tmp_path / "best", monitor="valid/loss")
    trainer = _trainer(
        tmp_path,
        max_steps=30,
        val_check_interval=10,
        callbacks=[best, LearningRateMonitor()],
        logger=CSVLogger(tmp_path),
        log_every_n_steps=10,
    )
    config = tiny(optim=OptimConfig(lr=1e-2, schedule="plateau"), updates=30)
    trainer.fit(SequenceModule(config))
    assert set(trainer.callback_metrics) >= {"valid/loss", "valid/accuracy"}
    assert best.best_model_score is not None
    engine = train(Config(**{**vars(config), "out": tmp_path / "run"}), quiet=True)
    assert float(trainer.callback_metrics["valid/loss"]) == pytest.approx(engine.final["valid"]["loss"])


def test_trainers_own_clipping_acts_too(tmp_path: Path) -> None:
    config = tiny(optim=OptimConfig("sgd", 1.0), updates=1)
    module = SequenceModule(config)
    before = {name: weight.clone() for name, weight in module.model.state_dict().items()}
    _trainer(
        tmp_path, max_steps=1, gradient_clip_val=1e-3, gradient_clip_algorithm="value", enable_checkpointing=False
    ).fit(module)
    moved = max(float((weight - before[name]).abs().max()) for name, weight in module.model.state_dict().items())
    assert moved == pytest.approx(1e-3, rel=1e-3)


def test_recovery_warns(tmp_path: Path) -> None:
    module = SequenceModule(tiny(task=EchoTask(spoiled=12), updates=5))
    with pytest.warns(UserWarning, match="the gradient of update 3 is not finite: back to the net after update 0"):
        _trainer(tmp_path, max_steps=5, enable_checkpointing=False).fit(module)


@pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty")
def test_own_trainer_goes_on_from_its_own_checkpoint(tmp_path: Path) -> None:
    """With the carried state of a piece, and recoveries before it."""
    config = tiny(task=EchoTask(spoiled=7), optim=OptimConfig("sgd", 1e-2, momentum=0.5), bptt=5, updates=20)
    whole, stopped, resumed = (SequenceModule(config) for _ in range(3))
    whole.say = stopped.say = lambda text: None
    _trainer(tmp_path, max_steps=20, enable_checkpointing=False).fit(whole)
    keep = ModelCheckpoint(tmp_path, every_n_train_steps=11, filename="kept")
    _trainer(tmp_path, max_steps=11, callbacks=[keep]).fit(stopped)
    _trainer(tmp_path, max_steps=20, callbacks=[keep]).fit(resumed, ckpt_path=tmp_path / "kept.ckpt")
    assert len(resumed.recoveries) == 3
    assert resumed.recoveries == whole.recoveries
    assert all(torch.equal(weight, whole.state_dict()[name]) for name, weight in resumed.state_dict().items())


def test_same_seed_same_weights() -> None:
    weights = [SequenceModule(tiny(seed=seed)).model.state_dict() for seed in (3, 3, 4)]
    name = "readout.weight"
    assert torch.equal(weights[0][name], weights[1][name])
    assert not torch.equal(weights[0][name], weights[2][name])


def test_a_net_of_ones_own(tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.readout = torch.nn.LSTM(1, 4), torch.nn.Linear(4, 1)

        def forward(self, inputs: Any, state: Any = None, lengths: Any = None) -> Any:
            hidden, state = self.rnn(inputs, state)
            return self.readout(hidden), state

    module = SequenceModule(tiny(bptt=5, updates=9), Net())
    _trainer(tmp_path, max_steps=9, enable_checkpointing=False).fit(module)
    assert 0 < module.mean_loss() < 0.5
