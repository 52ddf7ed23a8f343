"""Ticket: the result of a submitted frame, when it is ready."""

from __future__ import annotations

import threading

import torch
from torch import Tensor

from slimrnn.serving.native_pool import WAITING, NativePool

FOREVER = 1e8  # seconds


class Ticket:
    """Of `StreamPool.submit`. A ticket that is dropped gives its place back."""

    def __init__(self, pool: NativePool, number: int, stream: int, output_like: Tensor) -> None:
        self._pool, self._number, self.stream, self._like = pool, number, stream, output_like
        self._lock = threading.Lock()
        self._result: Tensor | Exception | None = None

    def done(self) -> bool:
        """Whether `result` would come at once."""
        return self._wait(0)

    def result(self, timeout: float | None = None) -> Tensor:
        """The output (output_size); waits for it, at most `timeout` seconds."""
        if timeout is not None and not timeout >= 0:  # NaN, too
            raise ValueError(f"expected timeout to be None or at least 0 seconds, got {timeout}")
        if not self._wait(timeout):
            raise TimeoutError(f"expected the frame of stream {self.stream} within {timeout} s, and it still waits")
        if isinstance(self._result, Exception):
            raise self._result
        assert self._result is not None
        return self._result

    def _wait(self, timeout: float | None) -> bool:
        seconds = FOREVER if timeout is None else min(timeout, FOREVER)
        if not self._lock.acquire(timeout=seconds):
            return self._result is not None
        try:
            if self._result is not None:
                return True
            output = torch.empty_like(self._like)
            take = self._pool.library.slimrnn_pool_take
            status = take(self._pool.handle, self._number, seconds, output.data_ptr())
            if status == WAITING:
                return False
            self._result = self._pool.failed(status, self.stream) if status else output
            return True
        finally:
            self._lock.release()

    def __del__(self) -> None:
        if self._result is None:
            self._pool.library.slimrnn_pool_take(self._pool.handle, self._number, -1.0, None)
