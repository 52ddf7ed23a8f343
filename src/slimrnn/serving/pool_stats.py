"""PoolStats: what a pool has done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PoolStats:
    """Counts since the pool was made, or since they were last started again; latencies in seconds, from a frame's
    arrival until its output was ready, each at most an eighth above the true one."""

    open: int  # streams
    capacity: int
    waiting: int  # frames that are not done
    frames: int  # that are
    failed: int  # frames of closed streams and those that were not finite
    seconds: float
    batches: int
    largest_batch: int
    batch_sizes: dict[int, int]  # batches of at least 1, 2, 4, 8, ... frames, and fewer than twice as many
    p50: float
    p90: float
    p99: float
    p999: float
    longest: float

    @property
    def frames_per_second(self) -> float:
        return self.frames / self.seconds if self.seconds else 0.0

    @property
    def mean_batch(self) -> float:
        return (self.frames + self.failed) / self.batches if self.batches else 0.0
