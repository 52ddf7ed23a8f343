"""The net of a run, loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from slimrnn.errors import CheckpointError, RunDirectoryError
from slimrnn.tasks import CopyTask, load_run
from slimrnn.training import Config, ModelConfig, train
from slimrnn.training.evaluation import EvaluationBatches, measure

CONFIG = Config(
    CopyTask(4), ModelConfig("gru", 4), updates=6, batch_size=4, valid_size=8, test_size=8, eval_every=2, threads=1
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return train(Config(**vars(CONFIG) | {"out": tmp_path / "run"}), quiet=True).directory


@pytest.mark.parametrize("file", ["", "best.safetensors", "final.safetensors"])
def test_the_net_has_the_scores_of_its_run(run: Path, file: str) -> None:
    from slimrnn.training import Run

    net, config = load_run(run / file)
    assert not net.training
    assert config.updates == 6
    result = Run(run).result
    assert result is not None
    expected = (result.final if file.startswith("final") else result.best)["test"]["loss"]
    assert measure(net, config.task, EvaluationBatches(config, "test", 8))["loss"] == pytest.approx(expected)


def test_what_is_no_run_or_no_net_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"which has no run\.json"):
        load_run(tmp_path)
    (run / "best.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="is damaged"):
        load_run(run)
