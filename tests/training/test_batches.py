"""Batches are functions of their number."""

from __future__ import annotations

import multiprocessing
from dataclasses import fields
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from training_cases import EchoTask

from slimrnn.tasks.adding import AddingTask
from slimrnn.training import Batch, Task
from slimrnn.training.batches import Batches, as_dtype


def _batches(task: Task | None = None, **options: Any) -> Batches:
    samples = (task or EchoTask()).samples("train", 0)
    return Batches(samples, options.pop("batch_size", 5), **{"updates": 12, **options})


def _assert_same(batch: Batch, other: Batch) -> None:
    for field in fields(Batch):
        a, b = getattr(batch, field.name), getattr(other, field.name)
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b, field.name


def test_new_sequences_come_in_order() -> None:
    batches = _batches()
    assert [batches.indices(k).tolist() for k in (0, 3)] == [[0, 1, 2, 3, 4], [15, 16, 17, 18, 19]]


@given(size=st.integers(1, 23), batch_size=st.integers(1, 30), seed=st.integers(0, 5))
def test_every_epoch_of_a_fixed_set_has_each_sequence_once(size: int, batch_size: int, seed: int) -> None:
    batches = _batches(size=size, batch_size=batch_size, seed=seed)
    epochs = 3
    needed = -(-epochs * size // batch_size)
    order = np.concatenate([batches.indices(k) for k in range(needed)])[: epochs * size].reshape(epochs, size)
    assert all(sorted(epoch) == list(range(size)) for epoch in order.tolist())


def test_epochs_are_shuffled_anew() -> None:
    order = [_batches(size=50, batch_size=50).indices(k).tolist() for k in range(2)]
    assert order[0] != order[1]
    assert order[0] != _batches(size=50, batch_size=50, seed=1).indices(0).tolist()


@pytest.mark.parametrize("bptt", [None, 5])
@pytest.mark.parametrize("world", [2, 3, 5])
def test_processes_share_a_batch(world: int, bptt: int | None) -> None:
    whole = list(_batches(bptt=bptt))
    parts = [list(_batches(bptt=bptt, rank=rank, world=world)) for rank in range(world)]
    for k, batch in enumerate(whole):
        for rank in range(world):
            torch.testing.assert_close(parts[rank][k].inputs, batch.inputs[:, rank::world])
            torch.testing.assert_close(parts[rank][k].targets, batch.targets[:, rank::world])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # from Python 3.12 on
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("bptt", "done"), [(None, 0), (None, 7), (5, 3), (5, 7), (5, 8)])
def test_restored_batches_go_on(bptt: int | None, done: int, workers: int) -> None:
    whole = list(_batches(bptt=bptt, size=17))
    assert len(whole) == 12
    first = _batches(bptt=bptt, size=17)
    stream = iter(first)
    list(islice(stream, done))
    second = _batches(bptt=bptt, size=17, workers=workers)
    second.load_state_dict(first.state_dict())
    rest = list(second)
    assert len(rest) == 12 - done
    for batch, expected in zip(rest, whole[done:], strict=True):
        _assert_same(batch, expected)


def test_pieces_carry_on_and_make_up_the_sequence() -> None:
    pieces, batch = list(_batches(bptt=5, updates=3)), _batches()[0]
    assert [len(piece.inputs) for piece in pieces] == [5, 5, 2]
    assert [piece.first for piece in pieces] == [True, False, False]
    torch.testing.assert_close(torch.cat([piece.inputs for piece in pieces]), batch.inputs)
    torch.testing.assert_close(torch.cat([piece.targets for piece in pieces]), batch.targets)


def test_sequences_begin_anew_after_some_pieces() -> None:
    plain, anew = list(_batches(bptt=2, updates=8)), list(_batches(bptt=2, updates=8, restart_every=4))
    assert [piece.first for piece in anew] == [True, False, False, False, True, False, True, False]
    assert [piece.first for piece in plain] == [True, False, False, False, False, False, True, False]
    for piece, same in zip(anew, plain, strict=True):
        torch.testing.assert_close(piece.inputs, same.inputs, rtol=0, atol=0)


def test_asked_again_they_go_on() -> None:
    batches = _batches(updates=3)
    list(batches)
    _assert_same(next(iter(batches)), _batches()[3])


def test_real_numbers_change_their_precision_and_no_others() -> None:
    batch = as_dtype(_batches()[0], torch.float64)
    assert batch.inputs.dtype == batch.targets.dtype == torch.float64
    assert batch.lengths is not None
    assert batch.lengths.dtype == torch.int64
    assert as_dtype(batch, torch.float64) is batch


def test_more_sequences_than_there_are_is_refused() -> None:
    class Ten:
        size = 10

        def fetch(self, indices: Any) -> Batch:
            raise NotImplementedError

    with pytest.raises(ValueError, match="expected a size of at most 10, the sequences there are, got 11"):
        Batches(Ten(), 2, updates=1, size=11)
    assert Batches(Ten(), 2, updates=1).size == 10


def test_one_output_only() -> None:
    parts = [_batches(AddingTask(6), rank=rank, world=2)[1] for rank in range(2)]
    whole = _batches(AddingTask(6))[1]
    torch.testing.assert_close(parts[1].targets, whole.targets[1::2])


def test_workers_outlive_what_ends_the_job() -> None:
    """A scheduler sends SIGTERM to all of its processes; the one that trains finishes its update."""
    batches = iter(_batches(workers=1, updates=40))
    next(batches)
    (worker,) = multiprocessing.active_children()
    worker.terminate()
    assert len(list(batches)) == 39
