"""What holds for the samples and scores of every task."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from real_data import needs_data
from slimrnn.tasks import (
    TASKS,
    AddingTask,
    CopyTask,
    GeneratedTask,
    MnistHighwayTask,
    PixelMnistTask,
    WordCopyTask,
    YouTube8MTask,
    find_task,
)
from slimrnn.tasks.transduction import TransductionTask
from slimrnn.training import Batch, Task

CASES: dict[str, Task] = {
    "copy": CopyTask(5, width=3),
    "copy-variable": CopyTask(6, variable_length=True, variable_lag=True),
    "word-copy": WordCopyTask(2),
    "adding": AddingTask(9),
}
REAL = [
    pytest.param(task, marks=needs_data, id=task.name)
    for task in (PixelMnistTask(), MnistHighwayTask(), YouTube8MTask(level="video"))
]
every_generated_task = pytest.mark.parametrize("task", CASES.values(), ids=CASES)
every_task = pytest.mark.parametrize("task", [*(pytest.param(task, id=name) for name, task in CASES.items()), *REAL])


def splits(task: Task) -> list[str]:
    return ["train", "valid", *task.test_sets]


def same(a: Batch, b: Batch) -> bool:
    return torch.equal(a.inputs, b.inputs) and torch.equal(a.targets, b.targets)


def some_output(task: Task, batch: Batch) -> Tensor:
    steps = batch.inputs.shape[:2] if task.every_step else batch.inputs.shape[1:2]
    return torch.randn(*steps, task.output_size)


def test_every_generated_task_has_a_case() -> None:
    others = {name for name, task in TASKS.items() if issubclass(task, TransductionTask)}  # in a suite of their own
    generated = {name for name, task in TASKS.items() if issubclass(task, GeneratedTask)} - others
    assert {task.name for task in CASES.values()} == generated


@every_generated_task
@given(indices=st.lists(st.integers(0, 2**40), min_size=1, max_size=6), seed=st.integers(0, 3))
def test_a_sequence_does_not_depend_on_the_others(task: Task, indices: list[int], seed: int) -> None:
    samples = task.samples("train", seed)
    together = samples.fetch(np.array(indices))
    for b, index in enumerate(indices):
        alone = samples.fetch(np.array([index]))
        assert torch.equal(alone.inputs[:, 0], together.inputs[:, b])
        if task.every_step:
            assert torch.equal(alone.targets[:, 0], together.targets[:, b])
        else:
            assert torch.equal(alone.targets[0], together.targets[b])


@every_generated_task
def test_splits_seeds_and_numbers_give_different_sequences(task: Task) -> None:
    long = replace(task, length=40) if isinstance(task, AddingTask | CopyTask) else task
    if isinstance(long, CopyTask):
        long = replace(long, width=40, symbols=50, variable_length=False)  # so many that none comes twice by chance
    drawn = [
        tuple(sequence.flatten().tolist())
        for split in splits(long)
        for seed in (0, 1)
        for sequence in long.samples(split, seed).fetch(np.arange(50)).inputs.unbind(1)
    ]
    assert len(set(drawn)) == len(drawn)


@every_task
def test_samples_survive_the_way_to_a_worker(task: Task) -> None:
    samples = task.samples("valid", 3)
    copied = pickle.loads(pickle.dumps(samples))
    assert same(copied.fetch(np.arange(4)), samples.fetch(np.arange(4)))
    assert (samples.size is None) == isinstance(task, GeneratedTask)


@every_task
def test_an_empty_share_of_a_batch_is_empty(task: Task) -> None:
    batch = task.samples("train", 0).fetch(np.arange(0))
    assert batch.inputs.shape[1] == 0
    assert all(float(score.weight) == 0 for score in task.scores(some_output(task, batch), batch).values())


@every_task
def test_unknown_splits_are_refused(task: Task) -> None:
    with pytest.raises(ValueError, match=r"expected split to be one of 'train', 'valid', .*, got 'tset'"):
        task.samples("tset", 0)


@every_task
def test_scores_of_parts_add_up(task: Task) -> None:
    samples = task.samples("valid", 0)
    whole = samples.fetch(np.arange(7))
    output = some_output(task, whole)
    at = -2 if task.every_step else 0
    parts = [
        task.scores(output.narrow(at, start, count), samples.fetch(np.arange(start, start + count)))
        for start, count in ((0, 3), (3, 4))
    ]
    for name, score in task.scores(output, whole).items():
        assert sum(float(part[name].total) for part in parts) == pytest.approx(float(score.total), rel=1e-5)
        assert sum(float(part[name].weight) for part in parts) == pytest.approx(float(score.weight))


@every_task
def test_sequences_of_no_weight_do_not_count(task: Task) -> None:
    samples = task.samples("valid", 0)
    whole, part = samples.fetch(np.arange(5)), samples.fetch(np.arange(3))
    output = some_output(task, whole)
    weights = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0])
    weights = weights.expand(len(whole.inputs), -1) if task.every_step else weights
    expected = task.scores(output.narrow(-2 if task.every_step else 0, 0, 3), part)
    for name, score in task.scores(output, replace(whole, weights=weights)).items():
        assert float(score.total) == pytest.approx(float(expected[name].total), rel=1e-5)
        assert float(score.weight) == pytest.approx(float(expected[name].weight))


@every_task
def test_the_loss_has_a_gradient_and_the_net_fits_the_scores(task: Task) -> None:
    batch = task.samples("train", 0).fetch(np.arange(2))
    net = task.model(replace(task.default_model(), hidden=4))
    output, _ = net(batch.inputs)
    scores = task.scores(output, batch)
    scores["loss"].total.backward()
    assert task.monitor in scores
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


def test_the_same_numbers_on_every_machine() -> None:
    copy = CopyTask(5).samples("train", 0).fetch(np.array([0, 1_000_000]))
    assert copy.inputs.argmax(-1)[:10].T.tolist() == [[0, 5, 2, 5, 4, 5, 0, 5, 6, 5], [7, 3, 6, 6, 4, 0, 2, 4, 5, 3]]
    varied = CopyTask(100, variable_length=True, variable_lag=True).samples("test", 1).fetch(np.arange(4))
    assert (varied.targets < 8).sum(0).tolist() == [3, 9, 1, 5]
    assert varied.inputs[:, :, 9].argmax(0).tolist() == [7, 60, 89, 80]
    word = WordCopyTask(1).samples("train", 0).fetch(np.array([3])).inputs[:6, 0].int().tolist()
    letters = ["".join(map(str, letter)) for letter in word]
    assert letters == ["00101111", "01111011", "01011110", "10100001", "00000000", "11010110"]
    sums = AddingTask(100).samples("any", 7).fetch(np.array([0, 1]))
    assert sums.targets[:, 0].tolist() == [1.4725284576416016, 0.8364688754081726]
    assert sums.inputs[:, :, 1].T.nonzero()[:, 1].tolist() == [57, 92, 45, 99]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CopyTask(-3), "expected length to be at least 1, got -3"),
        (lambda: CopyTask(symbols=0), "expected symbols to be at least 1, got 0"),
        (lambda: CopyTask(width=0), "expected width to be at least 1, got 0"),
        (lambda: CopyTask(1.5), "expected length to be an int, got 1.5"),  # type: ignore[arg-type]
        (lambda: WordCopyTask(0), "expected repeats to be at least 1, got 0"),
        (lambda: WordCopyTask(letters=0), "expected letters to be at least 1, got 0"),
        (lambda: WordCopyTask(bits=-1), "expected bits to be at least 1, got -1"),
        (lambda: AddingTask(0), "expected length to be at least 1, got 0"),
        (lambda: AddingTask(1), "expected length to be at least 2, one step per marker, got 1"),
    ],
)
def test_bad_options_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_tasks_are_found_by_name() -> None:
    assert list(TASKS)[:4] == ["copy", "word-copy", "adding", "pixel-mnist"]
    assert find_task("word-copy") is WordCopyTask
    with pytest.raises(ValueError, match=r"expected a task of copy, .*, got 'adidng'; did you mean 'adding'"):
        find_task("adidng")
