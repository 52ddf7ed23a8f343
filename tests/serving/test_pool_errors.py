"""What a pool refuses, and that no other stream is disturbed by it."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import struct
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from registry import needs_library
from slimrnn import GRU, LSTM, RNN, Dense, ReadOut, StreamPool
from slimrnn.errors import NotFinite, PoolError, PoolFull, PoolShutDown, SavedStreamError, StreamClosed
from slimrnn.serving.model_bytes import fnv

pytestmark = needs_library
X = torch.ones(2)


@pytest.fixture
def pool() -> Any:
    torch.manual_seed(0)
    with StreamPool(GRU(2, 4), capacity=3, threads=1) as pool:
        yield pool


def test_a_full_pool_says_so_and_has_room_again(pool: StreamPool) -> None:
    streams = [pool.open() for _ in range(3)]
    with pytest.raises(PoolFull, match="expected at most 3 open streams"):
        pool.open()
    saved = pool.save(streams[0])
    with pytest.raises(PoolFull):
        pool.load(saved)
    pool.close(streams[0])
    assert pool.open() not in streams


def test_closed_streams_are_refused_and_their_number_is_not_given_again(pool: StreamPool) -> None:
    stream, other = pool.open(), pool.open()
    before = pool.save(other)
    pool.close(stream)
    new = pool.open()
    for call in (pool.close, pool.save, lambda s: pool.step(s, X), lambda s: pool.submit(s, X)):
        for closed in (stream, -1, 7, 1 << 40):
            with pytest.raises(StreamClosed, match=rf"expected an open stream, got {closed}"):
                call(closed)
    with pytest.raises(StreamClosed, match=str(stream)):
        pool.step_many([other, stream, new], torch.ones(3, 2))
    assert pool.save(other) == before  # nothing was run
    pool.step(new, X)


def test_numbers_of_streams_are_whole_and_of_64_bits(pool: StreamPool) -> None:
    stream = pool.open()
    saved = pool.save(stream)
    calls: list[Any] = [pool.close, pool.save, lambda s: pool.step(s, X), lambda s: pool.submit(s, X)]
    calls += [lambda s: asyncio.run(pool.step_async(s, X)), lambda s: pool.step_many([stream, s], torch.ones(2, 2))]
    for call in calls:
        for wrong in (float(stream), stream + 0.7, str(stream), None, torch.tensor(0.5)):
            with pytest.raises(TypeError, match="expected the number of a stream, an int, got"):
                call(wrong)
        for other in (stream + 2**64, stream - 2**64, 2**63):
            with pytest.raises(StreamClosed, match=f"expected an open stream, got {other}"):
                call(other)
    for dtype in (torch.float64, torch.bool, torch.uint64):
        with pytest.raises(TypeError, match=rf"expected the numbers of streams, of torch.int64, got {dtype}"):
            pool.step_many(torch.tensor([stream]).to(dtype), X[None])
    assert pool.save(stream) == saved
    ids: Any = torch.tensor([stream])
    for same in (ids, ids.numpy(), list(ids), [ids.numpy()[0]]):
        assert pool.step_many(same, X[None]).shape == (1, 4)


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        (torch.ones(3), ValueError, r"expected frames of shape \(2,\), got \(3,\)"),
        (torch.ones(1, 2), ValueError, r"expected frames of shape \(2,\), got \(1, 2\)"),
        (torch.ones(2).double(), TypeError, r"expected frames of torch.float32, got torch.float64"),
        (torch.tensor([1.0, torch.nan]), NotFinite, "expected finite numbers"),
        (torch.tensor([torch.inf, 1.0]), NotFinite, "expected finite numbers"),
    ],
)
def test_frames_that_do_not_fit(pool: StreamPool, frame: torch.Tensor, error: type[Exception], words: str) -> None:
    stream = pool.open()
    saved = pool.save(stream)
    for call in (pool.step, pool.submit):
        with pytest.raises(error, match=words):
            call(stream, frame)
    assert pool.save(stream) == saved
    with pytest.raises(ValueError, match="expected a list of streams"):
        pool.step_many(torch.tensor([[stream]]), X[None])
    with pytest.raises(ValueError, match=r"expected frames of shape \(1, 2\)"):
        pool.step_many([stream], torch.ones(2, 2))


def test_frames_may_come_from_numpy_and_lie_anyhow(pool: StreamPool) -> None:
    a, b = pool.open(), pool.open()
    wanted = pool.step(a, torch.tensor([1.0, 2.0]))
    assert torch.equal(pool.step(b, torch.tensor([[1.0, 5.0], [2.0, 6.0]])[:, 0]), wanted)
    pool.close(a)
    assert torch.equal(pool.step(pool.open(), torch.tensor([1.0, 2.0]).numpy()), wanted)
    assert pool.step_many([], torch.empty(0, 2)).shape == (0, 4)


def test_a_state_that_overflows_leaves_its_stream_and_the_others_alone() -> None:
    rnn = RNN(1, 3, nonlinearity="relu")
    with torch.no_grad():
        for p in rnn.parameters():
            p.fill_(1e20)
    large, small = torch.tensor([1e19]), torch.tensor([-1e19])
    for nan in ("refuse", "pass"):
        with StreamPool(rnn, capacity=3, threads=1, nan=nan) as pool:
            good, bad = pool.open(), pool.open()
            before, unchanged = pool.save(bad), pool.save(good)
            frames = torch.stack([small, large])
            if nan == "pass":
                assert not pool.step_many([good, bad], frames)[1].isfinite().any()
                continue
            with pytest.raises(NotFinite, match=f"for stream {bad}, which is as it was"):
                pool.step_many([good, bad], frames)
            assert pool.save(good)[32:-8] == unchanged[32:-8]
            ticket = pool.submit(bad, large)
            with pytest.raises(NotFinite):
                ticket.result(60)
            assert pool.save(bad)[32:-8] == before[32:-8]  # the states
            assert pool.stats().failed == 2


def test_nothing_is_taken_after_a_shutdown_but_results_are_given() -> None:
    pool = StreamPool(GRU(2, 4), capacity=2, threads=1)
    stream = pool.open()
    tickets = [pool.submit(stream, X) for _ in range(20)]
    pool.shutdown()
    pool.shutdown()
    assert all(ticket.done() for ticket in tickets)
    for call in (pool.open, lambda: pool.step(stream, X), lambda: pool.submit(stream, X)):
        with pytest.raises(PoolShutDown, match="expected a running pool"):
            call()
    other = StreamPool(GRU(2, 4), capacity=2, threads=1)
    with pytest.raises(SavedStreamError):
        other.load(pool.save(stream))
    other.shutdown()


def test_too_many_frames_are_refused_until_results_are_taken() -> None:
    with StreamPool(GRU(2, 4), capacity=1, threads=1, max_pending=3) as pool:
        stream = pool.open()
        tickets = [pool.submit(stream, X) for _ in range(3)]
        with pytest.raises(PoolFull, match="expected at most 3 frames that wait"):
            pool.submit(stream, X)
        tickets[0].result(60)
        again = pool.submit(stream, X)
        again.result(60)
        del tickets, again  # a ticket that nobody wants gives its place back
        gc.collect()
        pool.save(stream)
        for ticket in [pool.submit(stream, X) for _ in range(3)]:
            ticket.result(60)


def test_frames_of_a_stream_that_is_closed_meanwhile_fail() -> None:
    with StreamPool(GRU(2, 4), capacity=1, threads=1, max_delay=60) as pool:
        stream = pool.open()
        ticket = pool.submit(stream, X)
        with pytest.raises(TimeoutError, match=r"within 0.01 s"):
            ticket.result(0.01)
        assert not ticket.done()
        pool.close(stream)
        with pytest.raises(StreamClosed):
            ticket.result(60)
        assert pool.stats().failed == 1


@pytest.mark.parametrize("timeout", [-1, -1e-9, -torch.inf, torch.nan])
def test_a_result_is_not_waited_for_less_than_no_time(pool: StreamPool, timeout: float) -> None:
    ticket = pool.submit(pool.open(), X)
    with pytest.raises(ValueError, match="expected timeout to be None or at least 0 seconds, got"):
        ticket.result(timeout)
    assert ticket.result(torch.inf).shape == (4,)  # it was not dropped


# --- saved streams --------------------------------------------------------------------------------------------------


def test_a_saved_stream_goes_on_in_another_pool() -> None:
    rnn, x = LSTM(2, 5), torch.randn(6, 2)
    a, b = (StreamPool(copy.deepcopy(rnn), capacity=2, threads=1) for _ in range(2))
    stream = a.open()
    tickets = [a.submit(stream, x_t) for x_t in x[:3]]
    saved = a.save(stream)  # after the three
    assert all(ticket.done() for ticket in tickets)
    moved = b.load(saved)
    assert b.save(moved) == saved
    for x_t in x[3:]:
        assert torch.equal(b.step(moved, x_t), a.step(stream, x_t))
    a.shutdown()
    b.shutdown()


def test_every_damaged_byte_of_a_saved_stream_is_noticed(pool: StreamPool) -> None:
    stream = pool.open()
    pool.step(stream, X)
    saved = pool.save(stream)
    for k in range(len(saved)):
        damaged = saved[:k] + bytes([saved[k] ^ 0x10]) + saved[k + 1 :]
        with pytest.raises(SavedStreamError, match="damaged"):
            pool.load(damaged)
    for cut in (b"", saved[:-1], saved + b"x", saved[:20]):
        with pytest.raises(SavedStreamError, match="damaged"):
            pool.load(cut)
    with pytest.raises(TypeError, match="expected bytes, got str"):
        pool.load("saved")  # type: ignore[arg-type]


def forged(saved: bytes, at: int, what: bytes) -> bytes:
    """With other bytes there, and the right checksum."""
    body = saved[:at] + what + saved[at + len(what) : -8]
    return body + fnv(body).to_bytes(8, "little")


def test_a_saved_stream_with_an_impossible_number_of_frames_is_refused(pool: StreamPool) -> None:
    saved = pool.save(pool.open())
    for frames in (2**63 - 1, 2**63 - 2, 2**62 + 1, -1, -(2**63)):
        with pytest.raises(SavedStreamError, match="damaged"):
            pool.load(forged(saved, 24, struct.pack("<q", frames)))
    assert pool.step(pool.load(forged(saved, 24, struct.pack("<q", 2**62))), X).shape == (4,)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("number", [0, 7])
def test_a_saved_state_that_is_not_finite_needs_a_pool_that_takes_it(number: int, value: float) -> None:
    rnn = LSTM(2, 4)
    with (
        StreamPool(rnn, capacity=2, threads=1) as pool,
        StreamPool(rnn, capacity=1, threads=1, nan="pass") as other,
    ):
        saved = forged(pool.save(pool.open()), 32 + 4 * number, struct.pack("<f", value))
        with pytest.raises(SavedStreamError, match="expected a saved stream with finite numbers, got NaN or infinity"):
            pool.load(saved)
        assert pool.stats().open == 1
        assert other.step(other.load(saved), X).shape == (4,)


@pytest.mark.parametrize("other", [GRU(2, 4), GRU(2, 5), LSTM(2, 4), [GRU(2, 4), nn.Linear(4, 4)]])
def test_a_stream_of_another_model_is_refused(pool: StreamPool, other: Any) -> None:
    with StreamPool(other, capacity=1, threads=1) as another:
        saved = another.save(another.open())
    with pytest.raises(SavedStreamError, match="expected a stream of the same model"):
        pool.load(saved)


# --- models ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (GRU(2, 4, bidirectional=True), "expected one direction"),
        (GRU(2, 4, vocabulary=5), "expected a layer that reads vectors"),
        (GRU(2, 4, delays=2), "expected layers without delays, skip and transition_depth"),
        (GRU(2, 4, delays=[1, 2]), "expected layers without delays, skip and transition_depth"),
        (GRU(2, 4, transition_depth=2), "expected layers without delays, skip and transition_depth"),
        (GRU(2, 4, backend="reference"), 'expected layers that the native core runs, with backend="native"'),
        (GRU(2, 4).half(), "expected a model in float32 or float64"),
        (nn.Linear(2, 4), "expected a recurrent layer of slimrnn in the model, got none"),
        ([GRU(2, 4), nn.Linear(5, 1)], "expected a layer for inputs of width 4, got one for 5"),
        ([GRU(2, 4), nn.Linear(4, 3), nn.Softmax(-1)], "expected what the native core can run, got Softmax"),
        ([GRU(2, 4), ReadOut(GRU(2, 4), 1, at="last")], r'expected ReadOut\(at="every"\), got at=.last.'),
        ([GRU(2, 4), nn.Linear(4, 1).double()], "expected one type of numbers in the whole model"),
        (nn.LSTM(2, 4), "expected a recurrent layer or nn.Linear, got LSTM"),
        ([], "expected a model or a list of modules"),
        (Dense(), "expected a model or a list of modules"),
    ],
)
def test_models_that_a_pool_cannot_run(model: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        StreamPool(model, capacity=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"capacity": 0}, "capacity"),
        ({"capacity": 1, "threads": 0}, "threads"),
        ({"capacity": 1, "threads": 5000}, "threads"),
        ({"capacity": 1, "max_batch": 0}, "max_batch"),
        ({"capacity": 1, "max_pending": 0}, "max_pending"),
        ({"capacity": 1, "max_delay": -1}, "max_delay"),
        ({"capacity": 1, "nan": "zero"}, "nan"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=rf"expected {words}"):
        StreamPool(GRU(2, 4), **options)


def test_a_pool_is_not_copied(pool: StreamPool) -> None:
    for make in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="got a StreamPool with threads: save its streams"):
            make(pool)


FORKED = """
import os, torch
from slimrnn import GRU, StreamPool
pool = StreamPool(GRU(2, 4), capacity=1, threads=1)
stream = pool.open()
child = os.fork()
if child == 0:
    try:
        pool.step(stream, torch.ones(2))
    except RuntimeError as error:
        print(error, flush=True)
    del pool
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
pool.step(stream, torch.ones(2))
print("and the parent goes on")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_fork_has_no_pool() -> None:
    run = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert "expected the process that made the pool, got a fork of it" in run.stdout, run.stderr
    assert run.stdout.endswith("and the parent goes on\n")


def test_a_pool_that_is_forgotten_ends_its_threads() -> None:
    pool = StreamPool(GRU(2, 4), capacity=1, threads=2)
    ticket = pool.submit(pool.open(), X)
    del pool
    assert ticket.result(60).shape == (4,)


def test_a_loop_that_is_closed_meanwhile_does_not_stop_the_results_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with StreamPool(GRU(2, 4), capacity=2, threads=1, max_delay=60, max_batch=2) as pool:
        a, b = pool.open(), pool.open()
        loop = asyncio.new_event_loop()
        with pytest.raises(asyncio.TimeoutError):
            loop.run_until_complete(asyncio.wait_for(pool.step_async(a, X), 0.01))
        loop.close()
        monkeypatch.setattr(loop, "is_closed", lambda: False)  # as it was a moment before
        assert asyncio.run(asyncio.wait_for(pool.step_async(b, X), 60)).shape == (4,)  # in a batch with a


AT_EXIT = """
import atexit
def last():  # what is registered first runs last
    print([ticket.result(60).shape[0] for ticket in tickets], flush=True)
    print([thread.name for thread in threading.enumerate()], flush=True)
atexit.register(last)
import asyncio, threading
import torch
from slimrnn import GRU, StreamPool
pool = StreamPool(GRU(3, 400), capacity=4, threads=1)
stream = pool.open()
tickets = [pool.submit(stream, torch.ones(3)) for _ in range(4)]
others = [pool.submit(stream, torch.ones(3)) for _ in range(4)]
asyncio.run(pool.step_async(stream, torch.ones(3)))
"""


def test_tickets_outlive_the_end_of_the_interpreter_and_threads_do_not() -> None:
    run = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (0, "[400, 400, 400, 400]\n['MainThread']\n"), run.stderr


def test_errors_are_pool_errors() -> None:
    for error in (PoolFull, PoolShutDown, StreamClosed, NotFinite, SavedStreamError):
        assert issubclass(error, PoolError)
