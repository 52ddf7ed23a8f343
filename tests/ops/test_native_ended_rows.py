"""Sequences that have ended take no part: what stands in their padding reaches no output, state or gradient."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from native_cases import Results, build, compare, differentiate, on, start
from torch import Tensor

from registry import BACKENDS, CELLS, FEW_PAIRS, needs_library, numbers
from slimrnn import LowRank
from slimrnn.layers.native_scan import native_program
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import native
from slimrnn.structures.dense import DenseMap

TIME, BATCH, INPUT = 5, 7, 4
LENGTHS = torch.tensor([2, 5, 0, 1, 4, 0, 3])
CASES = [(c, s) for c, s in FEW_PAIRS if c != "modrelu" or s in ("dense", "low-rank+diagonal")]
pairs = pytest.mark.parametrize(("cell", "structure"), CASES)
directions = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
FILLS = (math.nan, 1e300)  # of which the second outlives a comparison and a saturated function


def padded(t: Tensor, value: float, steps: int = 1) -> Tensor:
    """A sequence with this in its padding."""
    valid = torch.arange(len(t))[:, None] < LENGTHS * steps
    return torch.where(valid.reshape(*valid.shape, *(1,) * (t.dim() - 2)), t, value)


@directions
@pytest.mark.parametrize("backend", BACKENDS)
@pairs
def test_padding_reaches_nothing(cell: str, structure: str, backend: str, reverse: bool) -> None:
    for options in ({}, {"input_structure": LowRank(2)}, {"recurrent_dropout": 0.5}):
        layer = on(backend, build(cell, structure, **options))
        x, state = numbers(TIME, BATCH, INPUT), start(layer, BATCH)
        clean = differentiate(layer, padded(x, 0.0), state, LENGTHS, reverse)
        for value in FILLS:
            compare(differentiate(layer, padded(x, value), state, LENGTHS, reverse), clean, 0.0)
        if backend == "native":
            compare(clean, differentiate(on("reference", layer), padded(x, 0.0), state, LENGTHS, reverse), 1e-10)


def core(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...], reverse: bool) -> Results:
    """The native core by itself, on inputs or on their products, and every gradient that comes out of it."""
    x, state = x.detach().requires_grad_(), tuple(s.detach().requires_grad_() for s in state)
    program, u, bias = native_program(layer), None, None
    assert program is not None
    if x.dim() == 3:
        assert isinstance(layer.input, DenseMap)
        (u,), bias = layer.input.prepare(), layer.cell.input_bias()
    mask = torch.rand(BATCH, layer.cell.hidden_size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    lengths = LENGTHS * program.plan.phases
    output, last = native.scan(native.as_inputs(program, x, u, bias, state, mask, lengths, reverse))
    loss = output.square().sum() + torch.stack([s.abs().square().sum() for s in last]).sum()
    inputs: dict[str, Any] = {"x": x, **{f"state {k}": s for k, s in enumerate(state)}}
    inputs |= {name: p for name, p in layer.named_parameters() if p.requires_grad}
    found = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    gradients = {name: g for name, g in zip(inputs, found, strict=True) if g is not None}
    return {"output": output.detach()} | {f"gradient of {name}": g for name, g in gradients.items()}


@needs_library
@directions
@pairs
def test_padding_reaches_nothing_in_the_core(cell: str, structure: str, reverse: bool) -> None:
    layer = on("native", build(cell, structure))
    state, phases = start(layer, BATCH), len(layer.transitions)
    products = numbers(TIME * phases, BATCH, len(layer.cell.gates), layer.cell.hidden_size, complex=layer.cell.complex)
    for given in [products] + ([numbers(TIME, BATCH, INPUT)] if phases == 1 else []):
        clean = core(layer, padded(given, 0.0, phases), state, reverse)
        for value in FILLS:
            compare(core(layer, padded(given, value, phases), state, reverse), clean, 0.0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "options", [{}, {"skip": 2}, {"delays": 2}, {"checkpoint_every": 2}, {"recurrent_dropout": 0.5}]
)
@pytest.mark.parametrize("cell", CELLS)
def test_no_sequences(cell: str, options: dict[str, Any], backend: str) -> None:
    """B = 0 gives empty outputs and gradients of zero."""
    for time in (1, 3):
        for lengths in (None, torch.zeros(0, dtype=torch.long)):
            stack = CELLS[cell].build(INPUT, 6, backend=backend, **options)
            x = numbers(time, 0, INPUT).requires_grad_()
            output, last = stack(x, lengths=lengths)
            states = last if isinstance(last, tuple) else (last,)
            assert output.shape[:2] == (time, 0)
            (output.sum() + torch.stack([s.abs().sum() for s in states]).sum()).backward()
            assert x.grad is not None
            assert x.grad.shape == x.shape
            assert all(p.grad is None or not p.grad.any() for p in stack.parameters())


@pytest.mark.parametrize("backend", BACKENDS)
@directions
def test_second_derivatives_of_ended_sequences_where_zero_has_none(backend: str, reverse: bool) -> None:
    """|z| of a modReLU without input and state has no second derivative: the sequences that go on have."""
    layer = on(backend, build("modrelu", "diagonal"))
    x, lengths = numbers(TIME, 2, INPUT).requires_grad_(), torch.tensor([2, 5])
    output, _ = layer(x, tuple(torch.zeros_like(s) for s in start(layer, 2)), lengths, reverse)
    parameters = [x, *layer.parameters()]
    first = torch.autograd.grad(output.square().sum(), parameters, create_graph=True)
    second = torch.autograd.grad(torch.stack([g.square().sum() for g in first]).sum(), parameters)
    assert all(torch.isfinite(g).all() for g in (*first, *second))
