"""What holds for classify, tag, regress and forecast alike."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exact_resume import check_exact_resume
from own_cases import some_sequences, tasks, tiny
from slimrnn.errors import ConfigError
from slimrnn.tasks.own import ClassifyTask, ForecastTask, OwnTask, SequencesTask
from slimrnn.tasks.own.predicting import heading, predictions
from slimrnn.training import Batch, ModelConfig, Run, train
from slimrnn.training.checks import build_model

every = pytest.mark.parametrize("task", tasks().values(), ids=tasks())


def some_output(task: OwnTask, batch: Batch) -> torch.Tensor:
    steps = batch.inputs.shape[:2] if task.every_step else batch.inputs.shape[1:2]
    return torch.randn(*steps, task.output_size, dtype=torch.float64)


@every
def test_a_sequence_does_not_depend_on_the_others(task: OwnTask) -> None:
    samples = task.samples("train", 0)
    together = samples.fetch(np.arange(5))
    for index in range(5):
        alone = samples.fetch(np.array([index]))
        steps = len(alone.inputs)
        torch.testing.assert_close(alone.inputs[:, 0], together.inputs[:steps, index], rtol=0, atol=0)


@every
def test_samples_survive_the_way_to_a_worker(task: OwnTask) -> None:
    samples = task.samples("valid", 0)
    copied = pickle.loads(pickle.dumps(samples))
    assert torch.equal(copied.fetch(np.arange(1)).inputs, samples.fetch(np.arange(1)).inputs)


@every
def test_unknown_splits_are_refused(task: OwnTask) -> None:
    with pytest.raises(ValueError, match="expected split to be one of 'train', 'valid', 'test', got 'tset'"):
        task.samples("tset", 0)


@every
def test_scores_of_parts_add_up_and_no_weight_is_no_score(task: OwnTask) -> None:
    samples = task.samples("train", 0)
    whole = samples.fetch(np.arange(5))
    output = some_output(task, whole)
    at = 1 if task.every_step else 0
    weights = torch.ones(output.shape[:-1]) if whole.weights is None else whole.weights.clone()
    weights.narrow(at, 3, 2).zero_()
    scores = task.scores(output, replace(whole, weights=weights))
    kept = replace(
        whole,
        inputs=whole.inputs[:, :3],
        targets=whole.targets.narrow(at, 0, 3),
        weights=None if whole.weights is None else whole.weights[:, :3],
    )
    for name, score in task.scores(output.narrow(at, 0, 3), kept).items():
        assert float(scores[name].total) == pytest.approx(float(score.total), rel=1e-5)
        assert float(scores[name].weight) == pytest.approx(float(score.weight), rel=1e-5)


@pytest.mark.parametrize(
    "task", [tasks()[name] for name in ("classify in frames", "tag", "forecast")], ids=lambda task: task.name
)
def test_a_stopped_run_goes_on_as_if_it_had_not_been(task: OwnTask, tmp_path: Path) -> None:
    result = check_exact_resume(tiny(task), tmp_path)
    assert set(task.rivals("test")) & {"majority class", "mean", "last value"}
    score = {"regress": "r2", "forecast": "mase"}.get(task.name, "macro_f1")
    assert {"loss", score} <= set(result.best["test"])
    figure = {"regress": "answers.png", "forecast": "forecast.png"}.get(task.name, "confusion.png")
    assert (tmp_path / "whole" / figure).stat().st_size > 5000


@every
def test_the_facts_of_a_run_are_enough_to_predict(task: OwnTask) -> None:
    facts = json.loads(json.dumps(task.facts()))
    bare = replace(task)  # no sequences
    net = task.model(tiny(task).model).eval()
    known, again = [*predictions(task, net, task.sequences)], bare.restored(facts)
    assert [*predictions(again, net, task.sequences)] == known
    assert heading(again) == heading(task)
    assert {row[0] for row in known} == set(task.sequences.ids)
    assert all(len(row) == len(heading(task)) for row in known)


@every
def test_settings_suit_the_data_and_say_why(task: OwnTask) -> None:
    config, why = task.suited_config()
    assert "a GRU of 64 units" in why
    assert config.task.input_size > 0
    assert config.patience is not None
    variants = task.variants(config)
    assert len({str(one.model) + str(one.updates) for one in variants}) == len(variants) > 4
    assert all(isinstance(one.task, OwnTask) and one.task.valid_share for one in variants)


def test_noise_is_for_training_only() -> None:
    task = ClassifyTask.of(some_sequences(), noise=1.0)
    net = task.model(tiny(task).model)
    batch = task.samples("train", 0).fetch(np.arange(4))

    def loss(training: bool) -> float:
        return task.run(net.train(training), batch)[0].scores["loss"].total.item()

    assert loss(True) != loss(True)
    assert loss(False) == loss(False)


def test_a_task_without_data_says_how_to_give_it() -> None:
    for task in (ClassifyTask(), ForecastTask()):
        with pytest.raises(ConfigError, match=f"expected the file of your data, slimrnn train {task.name} --file FILE"):
            task.samples("train", 0)


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected the columns and scales of the data in run.json, got others"):
        ClassifyTask().restored({"roles": {}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_share": 1.0}, "expected test_share from 0 to 0.9, got 1.0"),
        ({"noise": -1.0}, "expected noise of at least 0, got -1.0"),
        ({"frame": 0}, "expected frame to be at least 1, got 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassifyTask(**options)  # type: ignore[arg-type]


def test_every_kind_of_labelled_task_is_a_sequences_task() -> None:
    kinds = {name: isinstance(task, SequencesTask) for name, task in tasks().items()}
    assert kinds == {name: name != "forecast" for name in kinds}


def test_facts_are_in_run_json(tmp_path: Path) -> None:
    task = ClassifyTask.of(some_sequences())
    train(tiny(task, updates=1, out=tmp_path / "run"), quiet=True)
    data = Run(tmp_path / "run").record["data"]
    assert data["classes"] == ["down", "up"]
    assert data["columns"] == ["x", "y"]
    assert len(data["mean"]) == len(data["scale"]) == 2


@pytest.mark.parametrize(
    "model",
    [
        ModelConfig("gru", 16, "low-rank", rank=12),
        ModelConfig("gru", 20, "block-diagonal", blocks=4),
        ModelConfig("gru", 16, "low-rank(12)+diagonal", reset="before"),
    ],
)
def test_all_variants_can_be_built(model: ModelConfig) -> None:
    task = ClassifyTask.of(some_sequences())
    variants = task.variants(tiny(task, model=model))
    assert len(variants) > 3
    for one in variants:
        build_model(one)
