"""The thread that brings results to event loops: it ends with its pool, and nobody waits for it in vain."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from registry import needs_library
from slimrnn import GRU, StreamPool
from slimrnn.errors import PoolError
from slimrnn.serving.native_pool import FORKED

pytestmark = needs_library
X = torch.ones(2)


@pytest.fixture
def pool() -> Iterator[StreamPool]:
    with StreamPool(GRU(2, 4), capacity=1, threads=1) as pool:
        yield pool


def in_time(work: Callable[[], Any]) -> None:
    """In a thread of its own, so that a test of a deadlock ends."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def test_a_pool_with_coroutines_that_is_forgotten_ends_its_threads() -> None:
    pool = StreamPool(GRU(2, 4), capacity=1, threads=1)
    assert asyncio.run(pool.step_async(pool.open(), X)).shape == (4,)
    thread, native = pool._collector.thread, weakref.ref(pool._native)
    assert thread is not None
    del pool
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()
    gc.collect()
    assert native() is None  # and with it the native threads


def test_a_pool_that_is_shut_down_leaves_no_thread_behind() -> None:
    with StreamPool(GRU(2, 4), capacity=1, threads=1) as pool:
        assert asyncio.run(pool.step_async(pool.open(), X)).shape == (4,)
        thread = pool._collector.thread
        assert thread is not None
    assert not thread.is_alive()


def test_a_pool_is_shut_down_from_its_own_thread() -> None:
    pool = StreamPool(GRU(2, 4), capacity=1, threads=1)
    pool._collector._deliver = lambda *_: pool.shutdown()  # type: ignore[method-assign]  # as a __del__ may
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(pool.step_async(pool.open(), X), 0.2))
    thread = pool._collector.thread
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()


def test_a_pool_is_shut_down_while_a_frame_is_handed_in(pool: StreamPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler may."""
    stream, submit = pool.open(), pool._native.submit

    def interrupted(*given: Any) -> int:
        ticket = submit(*given)
        pool.shutdown()
        return ticket

    async def work() -> None:
        await pool.step_async(stream, X)
        monkeypatch.setattr(pool._native, "submit", interrupted)
        assert (await pool.step_async(stream, X)).shape == (4,)

    in_time(lambda: asyncio.run(work()))


def test_a_forgotten_pool_waits_for_nobody() -> None:
    """Garbage collection calls its finalizer anywhere, also where another thread's lock is held."""
    pool = StreamPool(GRU(2, 4), capacity=1, threads=1)
    asyncio.run(pool.step_async(pool.open(), X))
    collector = pool._collector
    assert collector.thread is not None

    def work(pool: list[StreamPool]) -> None:
        with collector.lock:  # which the thread needs
            pool.clear()
            gc.collect()

    kept = [pool]
    del pool
    in_time(lambda: work(kept))
    collector.thread.join(60)
    assert not collector.thread.is_alive()


def test_without_a_thread_no_frame_is_handed_in(pool: StreamPool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = pool.open()

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            asyncio.run(pool.step_async(stream, X))
    in_time(lambda: asyncio.run(pool.step_async(stream, X)))
    assert pool.stats().frames == 1


def test_a_fork_does_not_wait_for_a_lock_of_its_parent(pool: StreamPool, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(pool.step_async(pool.open(), X))
    monkeypatch.setattr(pool._native, "end", lambda: FORKED)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with pool._collector.lock:
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    try:
        with pytest.raises(PoolError, match="got a fork of it"):
            in_time(pool.shutdown)
    finally:
        done.set()
        holder.join()
        monkeypatch.undo()
