"""The thread that brings results to event loops."""

from __future__ import annotations

import asyncio
import atexit
import threading
from contextlib import suppress
from ctypes import byref, c_int64
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor

from slimrnn.serving.native_pool import SHUT_DOWN, WAITING, NativePool

ROOM = 256  # results at a time
SECONDS = 3600.0

Found = list[tuple["asyncio.Future[Tensor]", Tensor | Exception]]


class Collector:
    """Futures by the numbers of their tickets. Its thread starts with the first one and ends with the pool."""

    def __init__(self, pool: NativePool, output_size: int, dtype: torch.dtype) -> None:
        self.pool, self.output_size, self.dtype = pool, output_size, dtype
        self.lock = threading.RLock()  # a signal handler may call `end` within `submit`
        self.is_submitting = False
        self.futures: dict[int, tuple[int, asyncio.Future[Tensor]]] = {}  # with the stream
        self.thread: threading.Thread | None = None

    def submit(self, stream: int, frame: int, most: int) -> asyncio.Future[Tensor]:
        future: asyncio.Future[Tensor] = asyncio.get_running_loop().create_future()
        with self.lock:  # so that no result comes before its future is here
            self.is_submitting = True
            try:
                if self.thread is None:  # first: without a thread nobody would bring the result
                    thread = threading.Thread(target=self._collect, name="slimrnn results", daemon=True)
                    thread.start()
                    self.thread = thread
                    _started.add(self)
                self.futures[self.pool.submit(stream, frame, True, most)] = stream, future
            finally:
                self.is_submitting = False
        return future

    def end(self) -> int:
        """The pool's threads and this one, which must not be in torch when the interpreter ends: that would abort."""
        status = self.pool.end()
        if status:  # in a fork the lock may be locked for ever
            return status
        with self.lock:  # called within `submit`, it cannot wait for a thread that waits for that call
            thread = None if self.is_submitting else self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        return status

    def _collect(self) -> None:
        tickets = torch.empty(ROOM, dtype=torch.int64)
        statuses = torch.empty(ROOM, dtype=torch.int32)
        collect, count = self.pool.library.slimrnn_pool_collect, c_int64()
        while True:
            outputs = torch.empty(ROOM, self.output_size, dtype=self.dtype)
            places = (tickets.data_ptr(), outputs.data_ptr(), statuses.data_ptr(), byref(count))
            status = collect(self.pool.handle, ROOM, SECONDS, *places)
            if status == WAITING:
                continue
            if status == SHUT_DOWN:
                return
            self.pool.check(status)
            self._deliver(tickets[: count.value].tolist(), statuses[: count.value].tolist(), outputs)

    def _deliver(self, tickets: list[int], statuses: list[int], outputs: Tensor) -> None:
        found: dict[Any, Found] = {}
        with self.lock:
            for number, (ticket, status) in enumerate(zip(tickets, statuses, strict=True)):
                stream, future = self.futures.pop(ticket)
                result = self.pool.failed(status, stream) if status else outputs[number].clone()
                found.setdefault(future.get_loop(), []).append((future, result))
        for loop, results in found.items():
            with suppress(RuntimeError):  # the loop was closed, at any moment: nobody waits there
                loop.call_soon_threadsafe(_resolve, results)


_started: WeakSet[Collector] = WeakSet()


@atexit.register
def _end_all() -> None:
    for collector in list(_started):
        collector.end()


def _resolve(results: Found) -> None:
    for future, result in results:
        if future.done():  # cancelled
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
