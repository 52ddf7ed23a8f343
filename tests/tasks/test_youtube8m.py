"""YouTube-8M: batches, scores, damage and training, on the real video-level sample and on shards written here.

No shard of frame-level features is at hand: those of the tests follow the published schema (tests/video_shards.py)."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scoring import value
from torch import Tensor
from torch.nn import functional

from exact_resume import check_exact_resume
from real_data import needs_data
from slimrnn.data import DataError
from slimrnn.data.tfrecord import find_records
from slimrnn.data.youtube8m import SCALE, SHIFT
from slimrnn.tasks import YouTube8MTask
from slimrnn.training import Batch, Config, ModelConfig, OptimConfig, Run, train
from slimrnn.training.batches import Batches, as_dtype
from slimrnn.training.checks import build_model
from slimrnn.training.evaluation import EvaluationBatches, Totals, measure
from slimrnn.training.models.frame_model import dequantised
from video_shards import flip, frame_record, some_frames, some_records, write_shard

REAL = YouTube8MTask(level="video")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards of 30 training videos, one of 24 to validate and test; none has more than 9 frames."""
    root = tmp_path_factory.mktemp("yt8m")
    for part in (0, 1):
        write_shard(root / f"train/train{part}.tfrecord", some_records(30, 30 * part))
    write_shard(root / "validate/validate0.tfrecord", some_records(24, 100))
    return root


@pytest.fixture
def task(folder: Path) -> YouTube8MTask:
    return YouTube8MTask(folder=folder, classes=30)


def settings(task: YouTube8MTask, **options: Any) -> Config:
    """A run of a second."""
    sizes = {"updates": 4, "batch_size": 6, "eval_every": 2, "checkpoint_every": 2, "valid_size": 1000}
    return Config(
        task, ModelConfig("lstm", 8), OptimConfig(lr=1e-2), **{"tensorboard": False, "threads": 1, **sizes, **options}
    )


def numbers(batch: Batch) -> list[int]:
    """Of the videos: the frames of video i are drawn from i."""
    known = {some_frames(i % 9 + 1, i)[0].tobytes(): i for i in range(60)}
    return [known[frame.numpy().tobytes()] for frame in batch.inputs[0]]


def test_bytes_stand_for_numbers_in_the_middle_of_their_bins() -> None:
    """4/255 · q + 4/512 − 2, by hand."""
    found = dequantised(torch.tensor([0, 1, 128, 255], dtype=torch.uint8), torch.float64)
    assert found.tolist() == pytest.approx([-1.9921875, -1.9765012255, 0.0156556372, 2.0078125], abs=1e-9)
    assert dequantised(torch.zeros(1, dtype=torch.uint8)).dtype == torch.float32


def test_the_net_reads_bytes_as_numbers(task: YouTube8MTask) -> None:
    batch, net = task.samples("train", 0).fetch(np.arange(5)), task.model(ModelConfig("gru", 4)).double()
    assert batch.inputs.dtype == torch.uint8
    output, _ = net(batch.inputs, None, batch.lengths)
    expected, _ = net(batch.inputs.double() * SCALE + SHIFT, None, batch.lengths)
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-12)


def test_a_new_net_expects_three_labels_a_video() -> None:
    net = REAL.model(ModelConfig("lstm", 4))
    output, _ = net(torch.zeros(1, 2, 1152))
    assert output.sigmoid().sum(-1).tolist() == pytest.approx([3, 3], rel=0.5)
    assert REAL.baselines["uniform"] == pytest.approx(3 * np.log(3862 / 3) + 3, rel=1e-3)  # H(p) ≈ p − p ln p
    assert YouTube8MTask(classes=2).baselines["uniform"] == pytest.approx(2 * np.log(2))


def test_a_hidden_read_out_is_alive() -> None:
    torch.manual_seed(0)
    net = YouTube8MTask(classes=50).model(ModelConfig("gru", 8, readout_hidden=16)).eval()
    output, _ = net(torch.randn(3, 4, 1152))
    assert output.std(0).min() > 1e-4
    assert output.sigmoid().sum(-1).mean().item() == pytest.approx(3, rel=0.5)


def test_a_video_is_a_function_of_its_number(task: YouTube8MTask) -> None:
    samples = task.samples("train", 0)
    assert samples.size == 60
    indices = np.array([7, 31, 0, 7])
    batch = samples.fetch(indices)
    assert tuple(batch.inputs.shape) == (8, 4, 1152)
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [8, 5, 1, 8]
    for b, i in enumerate(indices):
        frames = torch.from_numpy(some_frames(i % 9 + 1, i))
        assert torch.equal(batch.inputs[: len(frames), b], frames)
        assert not batch.inputs[len(frames) :, b].any()
        assert batch.targets[b].nonzero()[:, 0].tolist() == [i % 5, 5 + i % 3]


def test_lengths_come_from_the_index_alone(task: YouTube8MTask, monkeypatch: pytest.MonkeyPatch) -> None:
    samples: Any = task.samples("train", 0)
    short: Any = replace(task, max_frames=4).samples("train", 0)
    monkeypatch.setattr("slimrnn.data.shards.read_record", None)
    indices = np.arange(60)
    assert np.array_equal(samples.lengths(indices), indices % 9 + 1)
    assert np.array_equal(short.lengths(indices), np.minimum(indices % 9 + 1, 4))


@pytest.mark.parametrize("workers", [0, 2])
def test_processes_and_workers_share_a_batch_without_overlap(task: YouTube8MTask, workers: int) -> None:
    samples = task.samples("train", 0)
    whole = list(Batches(samples, 6, updates=10, seed=3))
    parts = [list(Batches(samples, 6, updates=10, seed=3, rank=r, world=2, workers=workers)) for r in (0, 1)]
    for one, first, second in zip(whole, *parts, strict=True):
        found, expected = numbers(first) + numbers(second), numbers(one)
        assert found == expected[::2] + expected[1::2]
        assert torch.equal(torch.cat([first.targets, second.targets]), torch.cat([one.targets[::2], one.targets[1::2]]))
    assert sorted(i for batch in whole for i in numbers(batch)) == list(range(60))  # an epoch


def brute_force(output: Tensor, targets: Tensor) -> dict[str, float]:
    """The definitions, a video and a prediction at a time."""
    losses, hits, perr, predictions = 0.0, 0.0, 0.0, []
    for scores, labels in zip(output, targets, strict=True):
        probability = torch.sigmoid(scores)
        losses -= float((labels * probability.log() + (1 - labels) * (1 - probability).log()).sum())
        ranked = sorted(range(len(scores)), key=lambda c: -float(scores[c]))
        hits += float(labels[ranked[0]])
        count = int(labels.sum())
        perr += float(labels[ranked[:count]].sum()) / count
        predictions += [(float(scores[c]), bool(labels[c]), c) for c in ranked[:20]]

    def precision(listed: list[tuple[float, bool, int]], positives: float) -> float:
        right, total = 0, 0.0
        for place, (_, correct, _) in enumerate(sorted(listed, reverse=True), 1):
            right += correct
            total += correct * right / place
        return total / positives

    of_class = [
        precision([p for p in predictions if p[2] == c], float(targets[:, c].sum()))
        for c in range(targets.shape[1])
        if targets[:, c].any()
    ]
    means = {"loss": losses, "hit_at_1": hits, "perr": perr}
    return {name: total / len(output) for name, total in means.items()} | {
        "gap_at_20": precision(predictions, float(targets.sum())),
        "map": float(np.mean(of_class)),
    }


@pytest.mark.parametrize("classes", [12, 30])  # fewer than 20 predictions of a video, and more
def test_scores_are_their_definitions(folder: Path, classes: int) -> None:
    config = settings(YouTube8MTask(folder=folder, classes=classes), dtype="float64")
    net, samples = build_model(config), config.task.samples("valid", 0)
    batch = samples.fetch(np.arange(12))
    with torch.no_grad():
        output, _ = net(batch.inputs, None, batch.lengths)
    expected = brute_force(output, batch.targets)
    found = measure(net, config.task, EvaluationBatches(config, "valid", 1000))
    assert {name: pytest.approx(score, rel=1e-6) for name, score in expected.items()} == found


def test_pooled_scores_do_not_depend_on_processes(task: YouTube8MTask, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(task, dtype="float64")
    net = build_model(config).eval()
    expected = measure(net, task, EvaluationBatches(config, "test", 1000))
    monkeypatch.setattr("slimrnn.training.evaluation.MOST", 2)
    totals = Totals()
    for rank in (1, 0):
        for batch in EvaluationBatches(config, "test", 1000, rank, 2):
            with torch.no_grad():
                totals.add(task.run(net, as_dtype(batch, torch.float64))[0])
    assert totals.scores(task, torch.device("cpu")) == pytest.approx(expected, rel=1e-9)


def test_an_update_computes_no_rankings(task: YouTube8MTask) -> None:
    batch, net = task.samples("train", 0).fetch(np.arange(4)), task.model(ModelConfig("gru", 4))
    with torch.no_grad():
        outcome, _ = task.run(net.train(), batch)
        output, _ = net(batch.inputs, None, batch.lengths)
    assert (list(outcome.scores), outcome.kept) == (["loss"], {})
    losses = functional.binary_cross_entropy_with_logits(output, batch.targets, reduction="sum") / 4
    assert value(outcome.scores["loss"]) == pytest.approx(float(losses))
    assert value(task.scores(output, batch)["loss"]) == pytest.approx(float(losses))


def test_bad_records_have_no_weight(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "train.tfrecord", [*some_records(30), frame_record([40], some_frames(2))])
    task = YouTube8MTask(folder=tmp_path, classes=30)
    samples = task.samples("train", 0)
    flip(path, int(find_records(path)[0][1]) + 500)
    with pytest.warns(RuntimeWarning, match="2 of 31 records of .* cannot be used and are left out"):
        damaged = samples.fetch(np.arange(4))
    assert damaged.weights is not None
    assert damaged.weights.tolist() == [1, 0, 1, 1]
    whole, net = samples.fetch(np.array([0, 2, 3])), task.model(ModelConfig("gru", 4)).double().eval()
    with torch.no_grad():
        outcomes = [task.run(net, as_dtype(batch, torch.float64))[0] for batch in (damaged, whole)]
    for name, score in outcomes[1].scores.items():
        assert value(outcomes[0].scores[name]) == pytest.approx(value(score))
        assert float(outcomes[0].scores[name].weight) == 3
    assert all(torch.allclose(outcomes[0].kept[name], rows) for name, rows in outcomes[1].kept.items())


def test_a_batch_of_bad_records_only_changes_nothing(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "train.tfrecord", some_records(30))
    task = YouTube8MTask(folder=tmp_path, classes=30)
    samples = task.samples("train", 0)
    flip(path, 300)
    with pytest.warns(RuntimeWarning, match="1 of 30 records"):
        batch = samples.fetch(np.array([0, 0]))
    net = task.model(ModelConfig("gru", 4))
    with torch.no_grad():
        loss = task.run(net.train(), batch)[0].scores["loss"]
    assert (float(loss.total), float(loss.weight)) == (0, 0)
    assert task.pooled(task.run(net.eval(), batch)[0].kept) == {"gap_at_20": 0, "map": 0}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs a list of open files")
def test_epochs_do_not_grow(task: YouTube8MTask) -> None:
    batches = Batches(task.samples("train", 0), 6, updates=300)

    def epochs(count: int) -> int:
        for number in range(10 * count):
            batches[number]
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before, memory = len(os.listdir("/proc/self/fd")), epochs(2)
        assert epochs(30) < memory + 2 * 60 * 1152  # of 1,800 videos of some 6 KB
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        tracemalloc.stop()


def curve(directory: Path) -> dict[str, Any]:
    return {name: column for name, column in Run(directory).curve.items() if name != "seconds"}


@pytest.fixture(params=["frame", pytest.param("video", marks=needs_data)])
def either(request: pytest.FixtureRequest, task: YouTube8MTask) -> YouTube8MTask:
    """Frames written here, and the real means of frames."""
    return task if request.param == "frame" else REAL


def test_a_stopped_run_goes_on_as_if_it_had_not_been(either: YouTube8MTask, tmp_path: Path) -> None:
    config = settings(either, valid_size=20, test_size=20)
    whole = check_exact_resume(config, tmp_path)
    assert set(whole.final["test"]) == {"loss", "hit_at_1", "perr", "gap_at_20", "map"}


def test_two_processes_give_the_curve_of_one(task: YouTube8MTask, tmp_path: Path) -> None:
    config = settings(task, dtype="float64", updates=2)
    train(replace(config, out=tmp_path / "one"), quiet=True)
    train(replace(config, out=tmp_path / "two", devices=2), quiet=True)
    one, two = curve(tmp_path / "one"), curve(tmp_path / "two")
    assert list(one) == list(two)
    for name, column in one.items():
        np.testing.assert_allclose(two[name], column, rtol=1e-6, err_msg=name)


@needs_data
def test_a_net_learns_from_the_sample(tmp_path: Path) -> None:
    config = settings(REAL, updates=20, eval_every=20, batch_size=40, test_size=100, out=tmp_path / "run")
    result = train(config, quiet=True)
    losses = Run(result.directory).curve["test/loss"]
    assert losses[-1] < losses[0]
    assert result.final["test"]["hit_at_1"] > 0.1  # of 3,862 labels the most frequent is in 20 % of all videos


def test_without_data_training_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    for task, name in ((YouTube8MTask(), "yt8m"), (REAL, "yt8m_sample")):
        with pytest.raises(DataError, match=f"put it there, or run slimrnn data get {name}$"):
            train(Config(task, out=tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "shot"}, "expected level to be one of 'frame', 'video', got 'shot'"),
        ({"max_frames": 0}, "expected max_frames to be at least 1, got 0"),
        ({"level": "video", "max_frames": 10}, "expected max_frames only at level frame, got 10"),
        ({"classes": 0}, "expected classes to be at least 1, got 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        YouTube8MTask(**options)
