"""The native pool behind a StreamPool: its handle, and its statuses as exceptions."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_int64, c_void_p
from typing import Any

import torch

from slimrnn.errors import NotFinite, PoolError, PoolFull, PoolShutDown, SavedStreamError, StreamClosed
from slimrnn.ops.library import PoolOptionsStruct, PoolStatsStruct, check, missing_reason, native_library

FULL, CLOSED, NOT_FINITE, SHUT_DOWN, WAITING, NO_TICKET, DAMAGED, OTHER_MODEL, FORKED = range(32, 41)
DTYPES = (torch.float32, torch.float64)
ERRORS: dict[int, tuple[type[PoolError], str]] = {
    CLOSED: (StreamClosed, "expected an open stream, got {0}: it was closed, or is not of this pool"),
    NOT_FINITE: (
        NotFinite,
        "expected finite numbers in a frame and in what comes of it, got NaN or infinity for stream {0}, which is as "
        'it was before; nan="pass" computes with them',
    ),
    SHUT_DOWN: (PoolShutDown, "expected a running pool, got one that was shut down"),
    DAMAGED: (SavedStreamError, "expected what StreamPool.save gave, got damaged or other bytes"),
    OTHER_MODEL: (SavedStreamError, "expected a stream of the same model with the same weights, got one of another"),
    FORKED: (PoolError, "expected the process that made the pool, got a fork of it: make one there"),
    NO_TICKET: (PoolError, "expected a ticket whose result was not taken, got {0}"),
    FULL: (PoolFull, "expected at most {0}"),
}


class NativePool:
    """A handle and the library's functions; freed with its last reference."""

    def __init__(self, model: bytes, **options: float) -> None:
        library, handle = native_library(), c_void_p()
        if library is None:
            raise PoolError(f"expected slimrnn with its native library, got none: {missing_reason()}")
        self.library: Any = library
        status = library.slimrnn_pool_open(model, len(model), byref(PoolOptionsStruct(**options)), byref(handle))
        if status in (DAMAGED, 1):
            raise PoolError("expected a model that the native core takes, got one that it refuses: report this")
        check(status)
        self.handle = handle.value
        # Not when the interpreter ends: tickets, and threads that are in a call, need it until the very end.
        weakref.finalize(self, library.slimrnn_pool_free, handle).atexit = False

    def failed(self, status: int, about: object = "") -> Exception:
        """The exception for a status."""
        if status not in ERRORS:
            try:
                check(status)
            except (MemoryError, RuntimeError) as error:
                return error
        kind, text = ERRORS[status]
        return kind(text.format(about))

    def check(self, status: int, about: object = "") -> None:
        if status:
            raise self.failed(status, about)

    def end(self) -> int:
        """Its threads; a fork has none, as the status says. Results can still be taken."""
        status: int = self.library.slimrnn_pool_shut_down(self.handle)
        return status

    def stats(self, start_again: bool = False) -> PoolStatsStruct:
        found = PoolStatsStruct()
        self.check(self.library.slimrnn_pool_stats_of(self.handle, start_again, byref(found)))
        return found

    def open(self, capacity: int) -> int:
        stream = c_int64()
        status = self.library.slimrnn_stream_open(self.handle, byref(stream))
        self.check(status, f"{capacity} open streams: close some, or make the pool with a larger capacity")
        return stream.value

    def save(self, stream: int, size: int) -> bytes:
        room = ctypes.create_string_buffer(size)
        self.check(self.library.slimrnn_stream_save(self.handle, stream, room), stream)
        return room.raw

    def load(self, saved: bytes, capacity: int) -> int:
        stream = c_int64()
        status = self.library.slimrnn_stream_load(self.handle, saved, len(saved), byref(stream))
        if status == NOT_FINITE:
            text = 'expected a saved stream with finite numbers, got NaN or infinity in its state; nan="pass" takes it'
            raise SavedStreamError(text)
        self.check(status, f"{capacity} open streams: close some, or make the pool with a larger capacity")
        return stream.value

    def submit(self, stream: int, frame: int, collected: bool, most: int) -> int:
        ticket = c_int64()
        status = self.library.slimrnn_pool_submit(self.handle, stream, frame, collected, byref(ticket))
        if status:
            full = f"{most} frames that wait or whose results were not taken: take results, or submit less"
            raise self.failed(status, full if status == FULL else stream)
        return ticket.value
