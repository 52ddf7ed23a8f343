"""The layers whose calls are recorded: every cell and every structure of the tests, in both precisions."""
# ruff: noqa: E402 -- the modules of the tests are found by their path

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "ops"), str(TESTS / "exporting" / "int8")]

from int8_cases import EXACT_CELLS, EXACT_STRUCTURES
from native_cases import BATCH, INPUT, LENGTHS, TIME, WIDE, differentiate, start

import slimrnn
from registry import CELLS, FEW_PAIRS, SIZE, STRUCTURES, numbers, randomise_
from slimrnn import Structure

if TYPE_CHECKING:
    from calls import Recorder


def run(recorder: Recorder, cell: str, size: int, structure: Structure, ragged: bool) -> None:
    """Forward, backward and a single step, in both precisions; backwards in time where it is not ragged."""
    stack = randomise_(CELLS[cell].build(INPUT, size, structure=structure, backend="native"), 0.1)
    recorder.case = f"{cell}, {structure}, {size} units"
    for dtype in (torch.float64, torch.float32):
        stack = stack.to(dtype)
        x, layer = numbers(TIME, BATCH, INPUT).to(dtype), stack.layer(0)
        differentiate(layer, x, start(layer), LENGTHS if ragged else None, reverse=not ragged)
        with torch.no_grad():
            stack.step(x[0], stack.initial_state(BATCH))


def run_int8(recorder: Recorder, cell: str, structure: str, size: int) -> None:
    """Whole, ragged and a single step: the same bits everywhere."""
    options: dict[str, Any] = {"structure": STRUCTURES[structure], "dtype": torch.float32}
    stack: Any = slimrnn.quantize(randomise_(CELLS[cell].build(INPUT, size, **options), 0.1))
    recorder.case, recorder.precision = f"{cell}, {structure}, {size} units in int8", "int8"
    x = torch.randn(TIME, BATCH, INPUT)
    with torch.no_grad():
        stack(x)
        stack(x, lengths=LENGTHS)
        stack.step(x[0], stack.initial_state(BATCH))
    recorder.precision = ""


def run_all(recorder: Recorder) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for cell, structure in FEW_PAIRS:
        run(recorder, cell, SIZE, STRUCTURES[structure], ragged=True)
    for size, wide in WIDE.values():
        for cell in ("lstm", "gru-before"):
            run(recorder, cell, size, wide, ragged=False)
    for cell in EXACT_CELLS:
        run_int8(recorder, cell, "low-rank+diagonal", SIZE)
    for structure in EXACT_STRUCTURES:
        run_int8(recorder, "gru-before", structure, 36)
