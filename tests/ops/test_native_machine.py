"""Results do not depend on the instruction set, the number of threads, the slicing of a batch, or the run."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from native_cases import (
    BATCH,
    INPUT,
    ISAS,
    LENGTHS,
    TIME,
    WIDE,
    Results,
    build,
    compare,
    differentiate,
    few_pairs,
    instruction_set,
    on,
    precisions,
    start,
    threads,
)

from registry import CELLS, needs_library, numbers
from slimrnn import GRU
from slimrnn.layers.recurrent_layer import RecurrentLayer

pytestmark = needs_library
PARAMETERS = ("recurrent.", "input.", "cell.", "leak", "deeper")


@few_pairs
def test_every_instruction_set_gives_the_same(cell: str, structure: str) -> None:
    layer = on("native", build(cell, structure))
    x, state = numbers(TIME, BATCH, INPUT), start(layer)
    found = []
    for name in ISAS:
        with instruction_set(name):
            found.append(differentiate(layer, x, state, LENGTHS))
    for other in found[1:]:
        compare(other, found[0], 1e-10)


def test_instruction_sets_are_listed_best_first_and_end_with_the_one_that_runs_everywhere() -> None:
    assert ISAS[-1] == "generic"
    assert len(set(ISAS)) == len(ISAS)


def in_new_process(isa: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import torch, slimrnn\n"
        "layer = slimrnn.GRU(2, 5, dtype=torch.float64)\n"
        "for p in layer.parameters(): torch.nn.init.constant_(p, 0.1)\n"
        "assert layer.backend == 'native'\n"
        "print(repr(layer(torch.ones(3, 2, 2, dtype=torch.float64))[0].sum().item()))\n"
    )
    environment = {**os.environ, "SLIMRNN_ISA": isa}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_instruction_set_of_the_environment() -> None:
    done = in_new_process("generic")
    assert done.returncode == 0, done.stderr
    layer = GRU(2, 5, dtype=torch.float64)
    for p in layer.parameters():
        torch.nn.init.constant_(p, 0.1)
    with torch.no_grad():
        expected = float(layer(torch.ones(3, 2, 2, dtype=torch.float64))[0].sum())
    assert float(done.stdout) == pytest.approx(expected, rel=1e-12)


def test_unknown_instruction_set_of_the_environment_is_refused() -> None:
    done = in_new_process("nonsense")
    assert done.returncode != 0
    assert f"ValueError: expected SLIMRNN_ISA to be one of {', '.join(ISAS)}, got 'nonsense'" in done.stderr


# --- bit for bit ----------------------------------------------------------------------------------------------------


def run(layer: RecurrentLayer, count: int = 1, batch: int = 7) -> Results:
    """Outputs, states and gradients of a ragged batch."""
    torch.manual_seed(0)
    x, state = numbers(TIME, batch, INPUT).to(next(layer.parameters()).dtype), start(layer, batch)
    lengths = torch.tensor([4, 1, 3, 2, 4, 4, 2]).repeat(batch // 7 + 1)[:batch]
    with threads(count):
        return differentiate(layer, x, state, lengths)


def is_of_parameter(name: str) -> bool:
    return name.startswith(tuple(f"gradient of {kind}" for kind in PARAMETERS))


def check_threads(layer: RecurrentLayer, batch: int = 7) -> None:
    alone, *others = (run(layer, count, batch) for count in (1, 2, 3))
    for other in others:
        compare(other, alone, 1e-12)
        for name, value in alone.items():
            assert is_of_parameter(name) or torch.equal(other[name], value), name


@few_pairs
def test_threads_change_no_bit(cell: str, structure: str) -> None:
    check_threads(on("native", build(cell, structure)))


@pytest.mark.parametrize("cell", ["lstm-peephole", "gru-before", "modrelu"])
def test_slices_that_threads_take_in_any_order_change_no_bit(cell: str) -> None:
    """Of a batch that is large enough for more slices than threads."""
    layer = on("native", build(cell, "low-rank+diagonal"))
    check_threads(layer, batch=25)
    first, *again = (run(layer, 3, 25) for _ in range(20))
    for other in again:
        for name, value in first.items():
            assert torch.equal(other[name], value), name


def check_slices(layer: RecurrentLayer) -> None:
    torch.manual_seed(0)
    x, state = numbers(TIME, 7, layer.input.shape.in_size).to(next(layer.parameters()).dtype), start(layer, 7)
    output, last = layer(x, state)
    # A deep layer's input product is torch's, whose sums depend on the number of rows.
    same = torch.equal if len(layer.transitions) == 1 else partial(torch.allclose, rtol=1e-4, atol=1e-5)
    for rows in (slice(0, 1), slice(1, 3), slice(3, 7)):
        part, ends = layer(x[:, rows], tuple(s[rows] for s in state))
        assert same(part, output[:, rows])
        assert all(same(a, b[rows]) for a, b in zip(ends, last, strict=True))


@precisions
@few_pairs
def test_slicing_the_batch_changes_no_bit(cell: str, structure: str, dtype: torch.dtype) -> None:
    layer = on("native", build(cell, structure, dtype=dtype))
    for isa in ISAS:
        with instruction_set(isa), torch.no_grad():
            check_slices(layer)


@pytest.mark.parametrize("cell", ["lstm-peephole", "gru-after", "modrelu"])
@pytest.mark.parametrize("shape", WIDE)
def test_wide_layers_change_no_bit(shape: str, cell: str) -> None:
    size, structure = WIDE[shape]
    layer = CELLS[cell].build(INPUT, size, structure=structure, backend="native").layer(0)
    check_threads(layer)
    for isa in ISAS:
        with instruction_set(isa), torch.no_grad():
            check_slices(layer)


@few_pairs
def test_runs_are_bit_for_bit_the_same(cell: str, structure: str) -> None:
    layer = on("native", build(cell, structure))
    first, again = (run(layer, count=3) for _ in range(2))
    for name, value in first.items():
        assert torch.equal(again[name], value), name


@pytest.mark.parametrize("cell", CELLS)
def test_slicing_the_batch_changes_no_bit_of_the_states_gradients(cell: str) -> None:
    layer = on("native", build(cell, "low-rank+diagonal"))
    torch.manual_seed(0)
    x, state = numbers(TIME, 7, INPUT), start(layer, 7)
    weights = numbers(TIME, 7, layer(x, state)[0].shape[-1])

    def gradients(rows: slice) -> tuple[torch.Tensor, ...]:
        sliced = tuple(s[rows].clone().requires_grad_() for s in state)
        return torch.autograd.grad((layer(x[:, rows], sliced)[0] * weights[:, rows]).sum(), sliced)

    whole = gradients(slice(None))
    for rows in (slice(0, 1), slice(1, 3), slice(3, 7)):
        assert all(torch.equal(a, b[rows]) for a, b in zip(gradients(rows), whole, strict=True))
