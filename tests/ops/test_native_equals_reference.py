"""The native core computes what the reference scan does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from native_cases import (
    BATCH,
    INPUT,
    LENGTHS,
    TIME,
    WIDE,
    Results,
    build,
    check_native,
    compare,
    few_pairs,
    on,
    only_native,
    pairs,
    precisions,
    start,
)

from registry import CELLS, SIZE, STRUCTURES, needs_library, numbers, randomise_
from slimrnn import Kronecker, LowRank
from slimrnn.layers import RecurrentStack

pytestmark = needs_library

VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # options of the layer, and of the call
    "plain": ({}, {}),
    "reversed": ({}, {"reverse": True}),
    "ragged-reversed": ({}, {"lengths": LENGTHS, "reverse": True}),
    "masks": ({"recurrent_dropout": 0.5}, {}),
    "masks-of-gates": ({"recurrent_dropout": 0.5, "mask_per_gate": True}, {}),
    "masks-of-gates-ragged": ({"recurrent_dropout": 0.5, "mask_per_gate": True}, {"lengths": LENGTHS}),
    "no-bias": ({"bias": False}, {}),
    "input-structure": ({"input_structure": LowRank(2)}, {"lengths": LENGTHS}),
}


@pairs
def test_native_is_reference(cell: str, structure: str) -> None:
    """In single and in double precision; the first step is that of all sequences, the others of those that go on."""
    layer = build(cell, structure, dtype=torch.float32)
    check_native(layer, numbers(TIME, BATCH, INPUT).float(), start(layer), LENGTHS)


@pytest.mark.parametrize("variant", VARIANTS)
@few_pairs
def test_native_is_reference_with_options(cell: str, structure: str, variant: str) -> None:
    options, call = VARIANTS[variant]
    layer = build(cell, structure, dtype=torch.float32, **options)
    check_native(layer, numbers(TIME, BATCH, INPUT).float(), start(layer), **call)


def whole(stack: RecurrentStack, backend: str, x: torch.Tensor) -> Results:
    """What a whole stack returns, and its gradients."""
    for k in range(len(stack.layers)):
        stack.layer(k).backend = backend
    torch.manual_seed(1)  # dropout masks
    output, last = stack(x, lengths=LENGTHS)
    parts = last if isinstance(last, tuple) else (last,)
    results: Results = {"output": output, **{f"last {k}": part for k, part in enumerate(parts)}}
    inputs = {"x": x, **{name: p for name, p in stack.named_parameters() if p.requires_grad}}
    loss = output.square().sum() + torch.stack([part.abs().square().sum() for part in parts]).sum()
    found = torch.autograd.grad(loss, list(inputs.values()))
    results |= {f"gradient of {name}": gradient for name, gradient in zip(inputs, found, strict=True)}
    return {name: value.detach() for name, value in results.items()}


@few_pairs
def test_native_stack_is_reference_stack(cell: str, structure: str) -> None:
    stack = CELLS[cell].build(
        INPUT,
        SIZE,
        num_layers=2,
        bidirectional=True,
        residual=True,
        dropout=0.25,
        recurrent_dropout=0.25,
        learn_initial_state=True,
        weight_norm=True,
        structure=STRUCTURES[structure],
    )
    randomise_(stack, 0.1)
    x = numbers(TIME, BATCH, INPUT).requires_grad_()
    with only_native():
        actual = whole(stack, "native", x)
    # together: weight normalisation leaves rows of one number no gradient but rounding errors
    compare(actual, whole(stack, "reference", x), 1e-10, together=0.0)


@few_pairs
def test_outputs_that_nobody_reads_have_no_gradient(cell: str, structure: str) -> None:
    """Only the last state is used: the core is told so instead of being given zeros."""
    layer = build(cell, structure)
    x = numbers(TIME, BATCH, INPUT).requires_grad_()
    state = tuple(part.requires_grad_() for part in start(layer))

    def gradients(backend: str, zeros: bool) -> Results:
        chosen = on(backend, layer)
        output, last = chosen(x, state, LENGTHS, True)
        loss = torch.stack([part.abs().square().sum() for part in last]).sum() + (0 * output.sum() if zeros else 0)
        inputs = {"x": x, **{f"state {k}": part for k, part in enumerate(state)}, **dict(chosen.named_parameters())}
        inputs = {name: t for name, t in inputs.items() if t.requires_grad}
        found = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
        return {name: g for name, g in zip(inputs, found, strict=True) if g is not None}

    with only_native():
        found, told = gradients("native", False), gradients("native", True)
    assert found.keys() == told.keys()
    assert all(torch.equal(found[name], told[name]) for name in found)
    compare(found, gradients("reference", False), 1e-10)


@pytest.mark.parametrize("batch", [1, 14])
@pytest.mark.parametrize("cell", ["lstm-peephole", "gru-before", "modrelu"])
@pytest.mark.parametrize("shape", WIDE)
def test_wide_layers(shape: str, cell: str, batch: int) -> None:
    """In single and in double precision."""
    size, structure = WIDE[shape]
    layer = CELLS[cell].build(19, size, structure=structure, dtype=torch.float32).layer(0)
    check_native(layer, numbers(6, batch, 19).float(), start(layer, batch))


@pytest.mark.parametrize("cell", ["tanh", "lstm-peephole", "gru-before", "gru-leaky-deep", "modrelu"])
def test_long_sequences(cell: str) -> None:
    """Gradients are summed up every hundred rows or so."""
    layer = build(cell, "low-rank+diagonal")
    check_native(layer, numbers(70, BATCH, INPUT), start(layer))


def test_leak_beside_peepholes() -> None:
    layer = build("lstm-leaky", peephole=True)
    check_native(layer, numbers(TIME, BATCH, INPUT), start(layer), LENGTHS)


@precisions
@pytest.mark.parametrize("cell", ["modrelu", "lstm"])
@pytest.mark.parametrize("sizes", [[2] * 5, [2, 4, 4]], ids=str)
@pytest.mark.parametrize("corner", [0.0, 1e-5, 1e-3, 0.5, 1.0])
def test_kronecker_factors_of_any_condition(corner: float, sizes: list[int], cell: str, dtype: torch.dtype) -> None:
    """From orthogonal to singular: gradients through a factor's inverse are taken only where that is safe."""
    stack = CELLS[cell].build(INPUT, 32, structure=Kronecker(sizes), dtype=dtype)
    with torch.no_grad():
        factor = stack.get_parameter("layers.0.recurrent.factor_2")
        one = torch.eye(sizes[2], dtype=dtype)
        real_parts = factor.zero_().view(*factor.shape[:3], -1)[..., 0]
        real_parts.copy_(0.35 * ((1 + corner) * one + (1 - corner) * one.flip(0)))
    layer = stack.layer(0)
    check_native(layer, numbers(TIME, BATCH, INPUT).to(dtype), start(layer))
