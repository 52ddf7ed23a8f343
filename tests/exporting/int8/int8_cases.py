"""Layers in int8 beside their emulation in plain torch, on every instruction set of this machine."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

import slimrnn
from registry import CELLS, STRUCTURES, randomise_
from slimrnn.ops.library import instruction_sets, native_library

ISAS = [] if (library := native_library()) is None else instruction_sets(library)
INPUT, TIME, BATCH = 5, 7, 6
LENGTHS = torch.tensor([7, 1, 4, 7, 2, 3])
REFUSED_CELLS = ("identity-complex", "modrelu", "modrelu-leaky-deep", "layer-norm-lstm", "layer-norm-gru")
EXACT_CELLS = [name for name in CELLS if name not in REFUSED_CELLS]
EXACT_STRUCTURES = (
    *("dense", "diagonal", "block", "low-rank", "low-rank-tied", "low-rank+diagonal", "tied+diagonal"),
    *("block+low-rank", "permutation", "shift", "householder"),
)


@contextlib.contextmanager
def instruction_set(name: str) -> Iterator[None]:
    lib: Any = native_library()
    assert lib.slimrnn_use_isa(name.encode()) == 0
    try:
        yield
    finally:
        assert lib.slimrnn_use_isa(None) == 0


def made(cell: str, structure: str, hidden: int = 12, **options: Any) -> Any:
    """A layer in float32 with numbers of some size everywhere."""
    rnn = CELLS[cell].build(INPUT, hidden, structure=STRUCTURES[structure], dtype=torch.float32, **options)
    return randomise_(rnn).eval()


def emulated(model: nn.Module) -> Any:
    """The same in plain torch."""
    found = copy.deepcopy(model)
    module: Any
    for module in found.modules():
        if hasattr(module, "backend"):
            module.backend = "reference"
    return found


def in_int8(model: nn.Module, **options: Any) -> Any:
    return slimrnn.quantize(model, **options)


def leaves(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [leaf for part in value for leaf in leaves(part)]


def assert_same_bits(ours: Any, theirs: Any) -> None:
    """But for the payload of a NaN."""
    for one, other in zip(leaves(ours), leaves(theirs), strict=True):
        assert torch.equal(one.isnan(), other.isnan())
        bits = [torch.where(t.isnan(), 0, t.contiguous().view(torch.int32)) for t in (one, other)]
        assert torch.equal(*bits), (one - other).abs().max()
