"""Layers to run on both backends, and what is compared: outputs, final states and every gradient."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from registry import CELLS, FEW_PAIRS, PAIRS, SIZE, STRUCTURES, numbers, randomise_
from slimrnn import BlockDiagonal, Dense, Diagonal, Kronecker, LowRank, Structure
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import reference
from slimrnn.ops.library import instruction_sets, native_library

INPUT, TIME, BATCH = 4, 4, 3
LENGTHS = torch.tensor([2, 4, 1])
ISAS = [] if (found := native_library()) is None else instruction_sets(found)
Results = dict[str, Tensor]

precisions = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
pairs = pytest.mark.parametrize(("cell", "structure"), PAIRS)
few_pairs = pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)

# More than one vector, panel, tile of rows and piece of a gradient sum in every direction.
WIDE: dict[str, tuple[int, Structure]] = {
    "dense": (131, Dense()),
    "block": (138, BlockDiagonal(2)),
    "low-rank+diagonal": (137, LowRank(35) + Diagonal()),
    "tied": (70, LowRank(34, tied=True)),
    "kronecker-2s": (128, Kronecker([2] * 7)),
    "kronecker-odd": (135, Kronecker([5, 9, 3])),
    "kronecker-pairs": (144, Kronecker([(6, 3), (2, 16), (12, 3)])),
    "kronecker-wide": (140, Kronecker([(1, 70), (140, 2)])),
}


def build(cell: str, structure: str = "dense", size: int = SIZE, input_size: int = INPUT, **options: Any) -> Any:
    """One layer of a registry pair, its parameters moved off their initial values."""
    if not options.get("bias", True):  # and so nothing that would be its initial value
        options |= {name: 0.0 for name in CELLS[cell].options if name.endswith("_bias")}
    stack = CELLS[cell].build(input_size, size, structure=STRUCTURES[structure], **options)
    return randomise_(stack, 0.1).layer(0)


def start(layer: RecurrentLayer, batch: int = BATCH) -> tuple[Tensor, ...]:
    """A random initial state in the layer's precision."""
    like = layer.initial_state(batch)
    return tuple(0.5 * numbers(*s.shape, complex=s.is_complex()).to(s.dtype) for s in like)


def differentiate(
    layer: RecurrentLayer,
    x: Tensor,
    state: tuple[Tensor, ...],
    lengths: Tensor | None = None,
    reverse: bool = False,
    seed: int = 1,
) -> Results:
    """Outputs, last states and the gradients, of a fixed random weighting of both, of everything that has one."""
    x, state = x.detach().requires_grad_(), tuple(s.detach().requires_grad_() for s in state)
    torch.default_generator.manual_seed(seed)  # dropout masks
    output, last = layer(x, state, lengths, reverse)
    results = {"output": output, **{f"last {k}": s for k, s in enumerate(last)}}
    draw = torch.Generator().manual_seed(seed)
    loss = torch.zeros((), dtype=x.dtype)
    for value in results.values():
        real = torch.view_as_real(value) if value.is_complex() else value
        loss = loss + (real * torch.randn(real.shape, generator=draw, dtype=torch.float64).to(x.dtype)).sum()
    inputs = {"x": x, **{f"state {k}": s for k, s in enumerate(state)}}
    inputs |= {name: p for name, p in layer.named_parameters() if p.requires_grad}
    found = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    for name, value, gradient in zip(inputs, inputs.values(), found, strict=True):
        results[f"gradient of {name}"] = torch.zeros_like(value) if gradient is None else gradient
    return {name: value.detach() for name, value in results.items()}


def on(backend: str, layer: RecurrentLayer, dtype: torch.dtype | None = None) -> RecurrentLayer:
    """The layer on this backend; in another precision, a copy."""
    if dtype not in (None, next(layer.parameters()).dtype):
        layer = copy.deepcopy(layer).to(dtype)
    layer.backend = backend
    return layer


def in_double(t: Tensor) -> Tensor:
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


def errors(actual: Results, expected: Results, together: float | None = None) -> dict[str, float]:
    """The worst error of each, as a part of its largest entry.

    `together`: of the largest entry of all gradients, or of all outputs and states, which are made of parts of at least
    this size: where few numbers are compared, they may all be small because large ones cancel."""
    assert actual.keys() == expected.keys()
    largest = {name: float(value.abs().max()) for name, value in expected.items()}
    if together is not None:
        for kind, least in ((True, 0.0), (False, together)):
            names = [name for name in largest if name.startswith("gradient") == kind]
            largest |= dict.fromkeys(names, max([least, *(largest[name] for name in names)]))
    found = {}
    for name, value in expected.items():
        assert actual[name].shape == value.shape, name
        assert torch.isfinite(value).all(), name
        off = float((in_double(actual[name]) - in_double(value)).abs().max())
        found[name] = off / largest[name] if off else 0.0
    return found


def compare(actual: Results, expected: Results, tolerance: float, together: float | None = None) -> None:
    """Equal to `tolerance` times the largest entry of each."""
    for name, error in errors(actual, expected, together).items():
        assert error <= tolerance, f"{name}: off by {error:.2e} of the largest entry"


def check_native(
    layer: RecurrentLayer,
    x: Tensor,
    state: tuple[Tensor, ...],
    lengths: Tensor | None = None,
    reverse: bool = False,
    single: float = 1e-5,
) -> None:
    """native = reference, the latter always in double precision so that its own rounding is not blamed.

    Numbers in single precision, to be held to `single`, are tried in double precision too."""
    wide, state_wide = on("reference", layer, torch.float64), tuple(map(in_double, state))
    expected = differentiate(wide, x.double(), state_wide, lengths, reverse)
    with only_native():
        compare(differentiate(on("native", wide), x.double(), state_wide, lengths, reverse), expected, 1e-10)
        if x.dtype == torch.float64:
            return
        actual = differentiate(on("native", layer), x, state, lengths, reverse)
    assert actual["output"].dtype == torch.float32
    found = errors(actual, expected)
    if max(found.values()) > single:
        # Also: GRU "after" keeps no candidate but recovers it, n = (h − u h_before) / (1 − u), which is multiplied by
        # 1 − u later: an error that is small beside the other gates' gradients, if not beside the candidate's own.
        found = errors(actual, expected, together=max(float(s.abs().max()) for s in state))
    if max(found.values()) > single:
        # Some numbers are beyond single precision, as modReLU's gradient, which grows as 1/|z|. Then the reference
        # misses the bound as well, and native may be off by a small multiple of what the reference is.
        usual = max(errors(differentiate(on("reference", layer), x, state, lengths, reverse), expected).values())
        assert max(found.values()) <= 4 * usual, f"native is off by {found}, the reference by {usual:.2e}"


@contextmanager
def only_native() -> Iterator[None]:
    """Fails where a layer quietly falls back to the reference scan."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("expected the native backend, got the reference scan")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "scan", refuse)
        yield


@contextmanager
def instruction_set(name: str) -> Iterator[None]:
    """Run on one instruction set, then go back to the one in use before."""
    lib = native_library()
    assert lib is not None
    assert lib.slimrnn_use_isa(name.encode()) == 0
    try:
        yield
    finally:
        before = os.environ.get("SLIMRNN_ISA")
        assert lib.slimrnn_use_isa(before.encode() if before else None) == 0


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch, and so the native core, use this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
