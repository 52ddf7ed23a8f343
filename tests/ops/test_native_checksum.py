"""The checksum of memory tells every change that weights may undergo."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_cases import ISAS, instruction_set

from registry import needs_library
from slimrnn.ops.library import native_library

pytestmark = needs_library


def checksum(*pieces: np.ndarray) -> int:
    library = native_library()
    assert library is not None
    data = (ctypes.c_void_p * len(pieces))(*(piece.ctypes.data for piece in pieces))
    sizes = (ctypes.c_int64 * len(pieces))(*(piece.nbytes for piece in pieces))
    return int(library.slimrnn_checksum(data, sizes, len(pieces)))


@pytest.mark.parametrize("isa", ISAS)
@given(size=st.integers(1, 2000), place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_every_byte_counts(isa: str, size: int, place: float, flip: int) -> None:
    with instruction_set(isa):
        memory = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
        before, at = checksum(memory), int(place * size)
        assert checksum(memory.copy()) == before
        memory[at] ^= flip
        assert checksum(memory) != before


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_signs_orders_and_factors_count(isa: str, dtype: type, sparse: bool) -> None:
    weights: np.ndarray = np.random.default_rng(0).standard_normal((128, 128)).astype(dtype)
    if sparse:
        weights *= np.eye(128, dtype=dtype)
    with instruction_set(isa):
        before = checksum(weights)
        changed = [-weights, weights * 2, weights * dtype(0.9), weights + dtype(1), np.roll(weights, 1), weights[::-1]]
        for distance in (1, 2, 8, 16, 32, 64, 127):  # two rows change places
            order = np.arange(128)
            order[[0, distance]] = distance, 0
            changed.append(weights[order])
        assert all(checksum(np.ascontiguousarray(other)) != before for other in changed)


@pytest.mark.parametrize("isa", ISAS)
def test_pieces_count_in_their_order(isa: str) -> None:
    with instruction_set(isa):
        a, b, none = np.ones(3), np.zeros(70), np.zeros(0)
        assert checksum(a, b) == checksum(a, none, b)
        assert len({checksum(), checksum(a), checksum(b), checksum(a, b), checksum(b, a)}) == 5
