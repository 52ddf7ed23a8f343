"""StreamPool: many streams over one copy of a model's weights.

Shape suffixes: B frames, I input width, O output width.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor

from slimrnn._checks import check_choice, check_count, check_number
from slimrnn.serving.collector import Collector
from slimrnn.serving.model_bytes import model_bytes
from slimrnn.serving.native_pool import NativePool
from slimrnn.serving.pool_stats import PoolStats
from slimrnn.serving.stages import Model, stages_of
from slimrnn.serving.stream_numbers import stream_number, stream_numbers
from slimrnn.serving.ticket import Ticket

if TYPE_CHECKING:
    from typing_extensions import Self


class StreamPool:
    """Streams of a recurrent model, each with a state of its own, and native threads that run their frames in batches.

        pool = StreamPool(rnn, capacity=10_000)
        stream = pool.open()
        y_t = pool.step(stream, x_t)

    model -- a stack of ours, or a list (or nn.Sequential) of stacks, nn.Linear, ReadOut and activations: its weights
    are copied, as in eval(), and later changes are not seen;
    capacity -- streams that may be open at once;
    threads -- that compute at once (default: as many as torch's);
    max_batch -- frames that run together, at most;
    max_delay -- seconds that a frame may wait for others to run with;
    max_pending -- submitted frames that wait or whose results were not taken, at most (default: 4 for each stream);
    nan -- "refuse": a frame with NaN or infinity, or that leads to such a state, is a NotFinite, and its stream stays
    as it was; "pass": it is computed like others.

    Outputs are those of `rnn.step`, bit for bit, whoever shares the batch. A stream's frames are run in the order in
    which they came. All methods may be called from any thread, but not in a fork of the process that made the pool. A
    pool that nobody holds any more is shut down."""

    def __init__(
        self,
        model: Model,
        capacity: int,
        *,
        threads: int | None = None,
        max_batch: int = 64,
        max_delay: float = 0.0,
        max_pending: int | None = None,
        nan: str = "refuse",
    ) -> None:
        self.threads = torch.get_num_threads() if threads is None else threads
        self.capacity, self.max_batch, self.max_delay, self.nan = capacity, max_batch, max_delay, nan
        check_count("capacity", capacity)
        self.max_pending = max(4 * capacity, 64) if max_pending is None else max_pending
        counts = {"max_pending": self.max_pending, "max_batch": max_batch, "threads": self.threads}
        for name, value in counts.items():
            check_count(name, value)
        for name, value, most in (("max_batch", max_batch, 4096), ("threads", self.threads, 1024)):
            if value > most:
                raise ValueError(f"expected {name} of at most {most}, got {value}")
        check_number("max_delay", max_delay)
        if not 0 <= max_delay <= 3600:
            raise ValueError(f"expected max_delay from 0 to 3600 seconds, got {max_delay}")
        check_choice("nan", nan, ["refuse", "pass"])
        stages = stages_of(model)
        self._model = model_bytes(stages)
        self.input_size, self.output_size = stages[0].input_size, stages[-1].width
        self.dtype = stages[0].inputs.state.dtype
        self._native = NativePool(
            self._model,
            capacity=capacity,
            max_tickets=self.max_pending,
            max_batch=max_batch,
            threads=self.threads,
            takes_nan=nan == "pass",
            max_delay=max_delay,
        )
        self._saved_bytes = self._native.stats().saved_bytes
        self._output_like = torch.empty(self.output_size, dtype=self.dtype)
        self._collector = Collector(self._native, self.output_size, self.dtype)
        weakref.finalize(self, self._native.end)  # waits for no Python thread: garbage collection calls it anywhere

    # --- streams ----------------------------------------------------------------------------------------

    def open(self) -> int:
        """A new stream, with the model's initial state. PoolFull if there are as many as `capacity`."""
        return self._native.open(self.capacity)

    def close(self, stream: int) -> None:
        """Give its place back. Frames that still wait fail with StreamClosed."""
        number = stream_number(stream)
        self._native.check(self._native.library.slimrnn_stream_close(self._native.handle, number), number)

    def save(self, stream: int) -> bytes:
        """The stream's state, after all frames that have been submitted so far."""
        return self._native.save(stream_number(stream), self._saved_bytes)

    def load(self, saved: bytes) -> int:
        """A new stream that goes on where `save` was called, maybe in another process, with the same model."""
        if not isinstance(saved, bytes):
            raise TypeError(f"expected bytes, got {type(saved).__name__}")
        return self._native.load(saved, self.capacity)

    # --- frames -----------------------------------------------------------------------------------------

    def step(self, stream: int, x_t: Any) -> Tensor:
        """The output (O) for a frame (I)."""
        x = self._frame(x_t)
        return self._run(torch.tensor([stream_number(stream)]), x[None])[0]

    def step_many(self, streams: Sequence[int] | Tensor, frames: Any) -> Tensor:
        """Outputs (B, O) for frames (B, I), one for each of the streams, in any order; a stream may come again.

        All or nothing: if a stream is closed, or a frame or what comes of it is not finite, the exception names the
        stream, and all of them are as they were before. Other frames of these streams wait until the call ends."""
        ids = stream_numbers(streams)
        return self._run(ids, self._frames(frames, (len(ids), self.input_size)))

    def submit(self, stream: int, x_t: Any) -> Ticket:
        """Hand in a frame (I), which is copied; `ticket.result()` is its output. PoolFull if too many wait."""
        number, x = stream_number(stream), self._frame(x_t)
        ticket = self._native.submit(number, x.data_ptr(), False, self.max_pending)
        return Ticket(self._native, ticket, number, self._output_like)

    async def step_async(self, stream: int, x_t: Any) -> Tensor:
        """`y = await pool.step_async(stream, x_t)`: as `step`, and the event loop goes on meanwhile."""
        number, x = stream_number(stream), self._frame(x_t)
        return await self._collector.submit(number, x.data_ptr(), self.max_pending)

    def _run(self, ids: Tensor, x_BI: Tensor) -> Tensor:
        count = len(ids)
        outputs = torch.empty(count, self.output_size, dtype=self.dtype)
        statuses = torch.empty(count, dtype=torch.int32)
        places = (ids.data_ptr(), x_BI.data_ptr(), outputs.data_ptr(), statuses.data_ptr())
        status = self._native.library.slimrnn_pool_step(self._native.handle, count, *places)
        if status:
            bad = ids[statuses == status].tolist() if count else []
            raise self._native.failed(status, bad[0] if len(bad) == 1 else bad)
        return outputs

    def _frame(self, x: Any) -> Tensor:
        return self._frames(x, (self.input_size,))

    def _frames(self, x: Any, shape: tuple[int, ...]) -> Tensor:
        found = x if isinstance(x, Tensor) else torch.as_tensor(x)
        if found.dtype != self.dtype:
            raise TypeError(f"expected frames of {self.dtype}, got {found.dtype}; convert them with .to({self.dtype})")
        if found.shape != shape:
            raise ValueError(f"expected frames of shape {shape}, got {tuple(found.shape)}")
        return found.detach().cpu().resolve_neg().contiguous()

    # --- the pool ---------------------------------------------------------------------------------------

    def stats(self, start_again: bool = False) -> PoolStats:
        """What it has done; with `start_again`, the counts begin anew after this."""
        found = self._native.stats(start_again)
        sizes = {2**k: count for k, count in enumerate(found.batch_sizes) if count}
        names = ("open", "capacity", "waiting", "frames", "failed", "seconds", "batches", "largest_batch")
        counts = {name: getattr(found, name) for name in names}
        latencies = {name: getattr(found, name) for name in ("p50", "p90", "p99", "p999", "longest")}
        return PoolStats(batch_sizes=sizes, **counts, **latencies)

    def write(self, path: Path | str) -> None:
        """The model as a file for slimrnn_pool_open of the C interface."""
        Path(path).write_bytes(self._model)

    def shutdown(self) -> None:
        """Take nothing new, and return when all frames are done. Results can be taken and streams saved afterwards."""
        self._native.check(self._collector.end())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def __reduce__(self) -> NoReturn:
        raise TypeError("expected something to copy or pickle, got a StreamPool with threads: save its streams instead")

    def __repr__(self) -> str:
        sizes = f"{self.input_size} -> {self.output_size}, capacity={self.capacity}, threads={self.threads}"
        return f"{type(self).__name__}({sizes}, max_batch={self.max_batch}, max_delay={self.max_delay})"
