"""Random numbers by address: a number is a function of a key, a sample's number and its place in the sample.

SplitMix64 (Steele, Lea & Flood 2014) in its counter form: output j of the stream that starts at s is
mix(s + (j + 1) γ), so that no state is carried along, and integer arithmetic gives the same on every machine.
Sample i of a key has the stream that starts at output i of the key's own stream.
"""

from __future__ import annotations

import hashlib
import json
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from slimrnn.training.task import Indices

Bits = NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio, made odd
_LARGEST_SPAN = 2**32


def key(seed: int, *names: int | str) -> int:
    """A 64-bit key for what is drawn under these names; other names or another seed give an unrelated one."""
    parts = [int(part) if isinstance(part, Integral) else part for part in (seed, *names)]
    digest = hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def stream(start: int, count: int) -> Bits:
    """The first `count` outputs of SplitMix64 with this seed."""
    return _outputs(np.array([start], dtype=np.uint64), np.arange(count)).reshape(-1)


def bits(key: int, indices: Indices, count: int) -> Bits:
    """64 random bits each: (samples, count). Asking for more, or for other samples, changes none of them."""
    starts = _outputs(np.array([key], dtype=np.uint64), np.asarray(indices)).reshape(-1)
    return _outputs(starts, np.arange(count))


def uniform(key: int, indices: Indices, count: int) -> NDArray[np.float64]:
    """Uniform in [0, 1): multiples of 2⁻⁵³."""
    return (bits(key, indices, count) >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)


def integers(key: int, indices: Indices, count: int, low: int, high: int) -> NDArray[np.int64]:
    """Uniform among low ... high − 1.

    The top 32 bits times the number of values, shifted down by 32: probabilities are equal up to a relative error of
    (high − low) / 2³², which no experiment here can see."""
    span = high - low
    if not 1 <= span <= _LARGEST_SPAN:
        raise ValueError(f"expected 1 to {_LARGEST_SPAN:,} values to choose from, got {span:,}")
    scaled = (bits(key, indices, count) >> np.uint64(32)) * np.uint64(span)
    return (scaled >> np.uint64(32)).astype(np.int64) + low


def permutation(key: int, size: int) -> Indices:
    """0 ... size − 1 in a random order."""
    return np.argsort(stream(key, size), kind="stable").astype(np.int64)


def _outputs(starts: Bits, places: NDArray[np.integer]) -> Bits:
    """Outputs number `places` of the streams that start at `starts`: (starts, places)."""
    counters = (places.astype(np.uint64) + np.uint64(1)) * _GAMMA
    z = starts[:, None] + counters[None, :]
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
