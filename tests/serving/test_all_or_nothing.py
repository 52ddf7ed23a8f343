"""A call of step_many runs all of its frames, or leaves all of its streams as they were, whoever else uses them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from registry import needs_library, numbers
from slimrnn import RNN, StreamPool
from slimrnn.errors import NotFinite, PoolError, StreamClosed

pytestmark = needs_library
INPUT = 8
TOO_LARGE = torch.full((INPUT,), 1.7e308, dtype=torch.float64)  # finite, but its sum is not


@pytest.fixture
def rnn() -> RNN:
    rnn = RNN(INPUT, 3, nonlinearity="relu").double().eval()
    with torch.no_grad():
        for parameter in rnn.parameters():
            parameter.fill_(0.25)
    return rnn


@pytest.fixture
def pool(rnn: RNN) -> Iterator[StreamPool]:
    with StreamPool(rnn, capacity=4, threads=2) as pool:
        yield pool


def state_of(pool: StreamPool, stream: int) -> bytes:
    return pool.save(stream)[32:-8]


def all_at_once(*works: Callable[[], None]) -> None:
    """In threads; the first of their errors is raised here."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def stepped(rnn: RNN, x_TI: Tensor) -> list[Tensor]:
    with StreamPool(rnn, capacity=1, threads=1) as pool:
        stream = pool.open()
        return [pool.step(stream, x_t) for x_t in x_TI]


def test_one_overflow_leaves_all_streams_as_they_were(rnn: RNN, pool: StreamPool) -> None:
    good, bad, x = pool.open(), pool.open(), numbers(6, INPUT)
    pool.step_many([good, bad], x[:2])
    before = state_of(pool, good), state_of(pool, bad)
    for streams, wrong in (([good, bad], 1), ([good, bad, good, good], 1), ([bad, good, bad, good], 2)):
        frames = x[: len(streams)].clone()
        frames[wrong] = TOO_LARGE
        with pytest.raises(NotFinite, match=f"for stream {bad}, which is as it was"):
            pool.step_many(streams, frames)
        assert (state_of(pool, good), state_of(pool, bad)) == before
    found = pool.step_many([good, good], x[2:4])
    assert torch.equal(found, torch.stack(stepped(rnn, x[[0, 2, 3]])[1:]))


def test_more_frames_than_a_batch_has_are_taken_back_together(rnn: RNN) -> None:
    with StreamPool(rnn, capacity=40, threads=2, max_batch=4) as pool:
        streams, x = [pool.open() for _ in range(40)], numbers(40, INPUT)
        pool.step_many(streams, x)
        before = [state_of(pool, stream) for stream in streams]
        x[37] = TOO_LARGE
        with pytest.raises(NotFinite, match=f"for stream {streams[37]},"):
            pool.step_many(streams, x)
        assert [state_of(pool, stream) for stream in streams] == before


def test_nobody_sees_a_state_that_is_taken_back(rnn: RNN, pool: StreamPool) -> None:
    shared, bad, x = pool.open(), pool.open(), numbers(100, INPUT)
    done, calls = threading.Event(), [0]

    def fail() -> None:
        while not done.is_set():
            with pytest.raises(NotFinite):
                pool.step_many([shared, bad, shared], torch.stack([x[0], TOO_LARGE, x[1]]))
            calls[0] += 1

    def step() -> None:
        try:
            with StreamPool(rnn, capacity=1, threads=1) as other:
                alone = other.open()
                for x_t in x:
                    assert torch.equal(pool.step(shared, x_t), other.step(alone, x_t))
                    assert state_of(pool, shared) == state_of(other, alone)
        finally:
            done.set()

    all_at_once(fail, step)
    assert calls[0]


def test_a_stream_may_be_closed_meanwhile(rnn: RNN, pool: StreamPool) -> None:
    """Its slot goes to the next one only when nothing is written there any more."""
    kept, x = pool.open(), numbers(2, INPUT)
    other, done = pool.open(), threading.Event()
    current, before = [other], state_of(pool, kept)
    (wanted,) = stepped(rnn, x[:1])

    def fail() -> None:
        while not done.is_set():
            stream = current[0]
            with pytest.raises((NotFinite, StreamClosed)):
                pool.step_many([kept, stream, stream, kept], torch.stack([x[0], x[1], TOO_LARGE, x[1]]))

    def reopen() -> None:
        try:
            for _ in range(200):
                pool.close(current[0])
                fresh, another = pool.open(), pool.open()
                assert torch.equal(pool.step(fresh, x[0]), wanted)
                assert torch.equal(pool.step(another, x[0]), wanted)
                pool.close(another)
                current[0] = fresh
        finally:
            done.set()

    all_at_once(fail, reopen)
    assert state_of(pool, kept) == before
    assert pool.stats().open == 2


def test_calls_that_share_streams_in_any_order_all_end(pool: StreamPool) -> None:
    streams, x = [pool.open() for _ in range(3)], numbers(3, INPUT)

    def call(order: list[int], good: bool) -> Callable[[], None]:
        frames = x.clone()
        frames[1] = x[1] if good else TOO_LARGE

        def work() -> None:
            for _ in range(100):
                try:
                    pool.step_many([streams[k] for k in order], frames)
                    assert good
                except PoolError:
                    assert not good
                pool.save(streams[order[0]])

        return work

    all_at_once(call([0, 1, 2], True), call([2, 1, 0], False), call([1, 0, 1], True), call([2, 2, 1], False))
    assert pool.stats().waiting == 0
