"""The registered operators are good citizens of torch: opcheck, compile, second derivatives, function transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from native_cases import (
    INPUT,
    LENGTHS,
    Results,
    build,
    compare,
    differentiate,
    few_pairs,
    on,
    only_native,
    start,
)
from torch import Tensor
from torch.autograd import forward_ad
from torch.fx import GraphModule
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint

from registry import CELLS, FEW_CELLS, needs_library, numbers, randomise_
from slimrnn import BlockDiagonal, LowRank, UnitaryProduct
from slimrnn.layers.recurrent_layer import RecurrentLayer

pytestmark = needs_library
cells = pytest.mark.parametrize("cell", CELLS)
SAMPLES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "ragged": ("lstm-peephole", "low-rank-tied", {}, {"lengths_B": LENGTHS, "reverse": True}),
    "masks": ("gru-after", "block", {"recurrent_dropout": 0.5}, {}),
    "masks-of-gates": ("lstm-peephole", "kronecker-2", {"recurrent_dropout": 0.5, "mask_per_gate": True}, {}),
    "complex": ("modrelu", "kronecker-pairs", {}, {}),
    "products": ("gru-before", "low-rank+diagonal", {"input_structure": LowRank(2), "bias": False}, {}),
}


class Record(TorchDispatchMode):
    """Keeps the arguments of every call of one of our operators."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: dict[str, tuple[Any, ...]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "slimrnn":
            assert not kwargs
            self.calls[func.overloadpacket.__name__] = args
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["scan", "scan_backward"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_opcheck(sample: str, name: str) -> None:
    cell, structure, options, call = SAMPLES[sample]
    layer = on("native", build(cell, structure, **options))
    x = numbers(4, 3, INPUT).requires_grad_()
    with Record() as record:
        layer(x, start(layer), **call)[0].sum().backward()
    wants_gradient = name == "scan"  # its backward is differentiated by the reference scan instead
    arguments = tree_map_only(Tensor, lambda t: leaf(t, wants_gradient), record.calls[name])
    torch.library.opcheck(getattr(torch.ops.slimrnn, name).default, arguments)


@pytest.mark.parametrize("sample", SAMPLES)
def test_opcheck_where_nobody_reads_the_outputs(sample: str) -> None:
    cell, structure, options, call = SAMPLES[sample]
    layer = on("native", build(cell, structure, **options))
    with Record() as record:
        layer(numbers(4, 3, INPUT).requires_grad_(), start(layer), **call)[1][0].abs().sum().backward()
    arguments = tree_map_only(Tensor, lambda t: leaf(t, False), record.calls["scan_backward"])
    assert arguments[0] is None
    torch.library.opcheck(torch.ops.slimrnn.scan_backward.default, arguments)


def leaf(t: Tensor, wants_gradient: bool) -> Tensor:
    return t.detach().clone().requires_grad_(wants_gradient and t.is_floating_point())


@pytest.mark.parametrize("sample", SAMPLES)
def test_operator_is_what_runs_without_it(sample: str) -> None:
    cell, structure, options, call = SAMPLES[sample]
    layer = on("native", build(cell, structure, **options))
    x, state = numbers(4, 3, INPUT), start(layer)
    how = (call.get("lengths_B"), call.get("reverse", False))
    without = differentiate(layer, x, state, *how)
    with Record() as record:
        found = differentiate(layer, x, state, *how)
    assert record.calls.keys() == {"scan", "scan_backward"}
    compare(found, without, 0.0)


# --- torch.compile --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", FEW_CELLS)
def test_compiled_is_eager(cell: str) -> None:
    torch._dynamo.reset()
    layer = on("native", build(cell, "low-rank+diagonal"))
    x, state = numbers(4, 3, INPUT), start(layer)
    compiled: Any = torch.compile(layer, backend="aot_eager", fullgraph=True)
    eager = differentiate(layer, x, state, LENGTHS)
    with only_native():
        found = differentiate(compiled, x, state, LENGTHS)
    compare({name.replace("_orig_mod.", ""): value for name, value in found.items()}, eager, 1e-12)


def test_graph_does_not_grow_with_time() -> None:
    sizes: list[list[str]] = []

    def count(graph: GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        sizes.append([str(node.target) for node in graph.graph.nodes])
        return graph.forward

    for time in (3, 300):
        torch._dynamo.reset()
        layer = on("native", build("lstm"))
        torch.compile(layer, backend=count, fullgraph=True)(numbers(time, 2, INPUT), start(layer, 2))
    assert len(sizes) == 2
    assert len(sizes[0]) == len(sizes[1])
    assert sum("slimrnn" in target for target in sizes[0]) == 1


# --- second derivatives ---------------------------------------------------------------------------------------------


def twice(layer: RecurrentLayer, lengths: Tensor | None, reverse: bool) -> None:
    """gradgradcheck in x, the initial state and every parameter."""
    x, state = numbers(3, 3, 2).requires_grad_(), tuple(s.requires_grad_() for s in start(layer, 3))
    parameters = [p for p in layer.parameters() if p.requires_grad]

    def run(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        torch.manual_seed(1)  # dropout masks
        output, last = layer(x, rest[: len(state)], lengths, reverse)
        return (output, *last)

    assert torch.autograd.gradgradcheck(run, (x, *state, *parameters), fast_mode=True, atol=1e-5)


@cells
def test_gradgradcheck(cell: str) -> None:
    layer = on("native", build(cell, "low-rank+diagonal", size=3, input_size=2, recurrent_dropout=0.5))
    twice(layer, torch.tensor([2, 3, 1]), reverse=True)


def second_order(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...]) -> Results:
    """First derivatives that can be differentiated, and the derivatives of their squares."""
    x, state = x.clone().requires_grad_(), tuple(s.clone().requires_grad_() for s in state)
    inputs = {"x": x, **{f"state {k}": s for k, s in enumerate(state)}}
    inputs |= {name: p for name, p in layer.named_parameters() if p.requires_grad}
    torch.manual_seed(1)  # dropout masks
    output, last = layer(x, state, LENGTHS, True)
    loss = output.square().sum() + torch.stack([s.abs().square().sum() for s in last]).sum()
    first = torch.autograd.grad(loss, list(inputs.values()), create_graph=True)
    size = torch.stack([g.abs().square().sum() for g in first]).sum()
    second = torch.autograd.grad(size, list(inputs.values()))
    found = {f"first of {name}": g for name, g in zip(inputs, first, strict=True)}
    return {k: g.detach() for k, g in (found | dict(zip(inputs, second, strict=True))).items()}


def check_second_derivatives(layer: RecurrentLayer) -> None:
    x, state = numbers(4, 3, INPUT), start(layer)
    actual, expected = (second_order(on(backend, layer), x, state) for backend in ("native", "reference"))
    compare(actual, expected, 1e-10)


@few_pairs
def test_second_derivatives_are_the_reference(cell: str, structure: str) -> None:
    check_second_derivatives(build(cell, structure))


@few_pairs
def test_second_derivatives_of_structured_inputs_and_masks(cell: str, structure: str) -> None:
    # A unit without input that is dropped has |0|, which has no second derivative.
    masks: dict[str, Any] = {"recurrent_dropout": 0.5, "mask_per_gate": True} if cell != "modrelu-leaky-deep" else {}
    check_second_derivatives(build(cell, structure, input_structure=LowRank(2), **masks))


def test_second_derivatives_of_a_sum_with_a_unitary_product() -> None:
    """Whose native term has a tensor more than its own product takes, a permutation."""
    structure = UnitaryProduct() + BlockDiagonal(3)
    check_second_derivatives(randomise_(CELLS["modrelu"].build(INPUT, 6, structure=structure), 0.1).layer(0))


def carried(layer: RecurrentLayer, x: Tensor) -> list[Tensor]:
    """First and second derivatives, where the state of the second call is made of the same parameters."""
    parameters = [p for p in layer.parameters() if p.requires_grad]
    output, last = layer(x, layer.initial_state(x.shape[1]))
    loss = layer(output[..., :INPUT], last)[0].square().sum()
    first = torch.autograd.grad(loss, parameters, create_graph=True)
    size = torch.stack([g.square().sum() for g in first]).sum()
    return [g.detach() for g in (*first, *torch.autograd.grad(size, parameters))]


@cells
def test_a_state_and_an_input_made_of_the_same_parameters(cell: str) -> None:
    layer, x = build(cell, "low-rank+diagonal"), numbers(4, 3, INPUT)
    for actual, expected in zip(*(carried(on(backend, layer), x) for backend in ("native", "reference")), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


@cells
def test_output_changed_in_place_gives_no_wrong_gradient(cell: str) -> None:
    layer = on("native", build(cell))
    x, state = numbers(4, 3, INPUT), start(layer)
    output, _ = layer(x, state)
    output.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@cells
def test_checkpointed_gradients_are_the_same(cell: str) -> None:
    layer = on("native", build(cell, "low-rank+diagonal"))
    x, state = numbers(4, 3, INPUT).requires_grad_(), start(layer)
    plain = torch.autograd.grad(layer(x, state)[0].square().sum(), [x, *layer.parameters()])
    output = checkpoint(lambda x: layer(x, state)[0], x, use_reentrant=False)
    again = torch.autograd.grad(output.square().sum(), [x, *layer.parameters()])
    assert all(map(torch.equal, again, plain))


# --- function transforms --------------------------------------------------------------------------------------------


def tangents(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...]) -> Tensor:
    with forward_ad.dual_level():
        output = layer(forward_ad.make_dual(x, x.cos()), state)[0]
        tangent: Tensor | None = forward_ad.unpack_dual(output).tangent
        assert tangent is not None
        return tangent


def many_gradients(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...]) -> Tensor:
    """Several vectors at once through one backward pass."""
    x = x.clone().requires_grad_()
    output = layer(x, state)[0]
    vectors = torch.stack([output.detach().cos(), output.detach().sin()])
    return torch.autograd.grad(output, x, vectors, is_grads_batched=True)[0]


def ensemble(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...]) -> Any:
    """One input, two sets of parameters."""
    parameters = {name: torch.stack([p.detach(), 0.5 * p.detach()]) for name, p in layer.named_parameters()}
    return torch.vmap(lambda p: torch.func.functional_call(layer, p, (x, state))[0])(parameters)


TRANSFORMS: dict[str, Callable[[RecurrentLayer, Tensor, tuple[Tensor, ...]], Any]] = {
    "vmap": lambda f, x, s: torch.vmap(lambda x: f(x, s)[0])(torch.stack([x, 2 * x])),
    "jvp": lambda f, x, s: torch.func.jvp(lambda x: f(x, s)[0], (x,), (x.cos(),)),
    "vjp": lambda f, x, s: torch.func.vjp(lambda x: f(x, s)[0].sum(), x)[1](torch.ones((), dtype=x.dtype)),
    "grad": lambda f, x, s: torch.func.grad(lambda x: f(x, s)[0].square().sum())(x),
    "jacrev": lambda f, x, s: torch.func.jacrev(lambda x: f(x, s)[0])(x),
    "jacfwd": lambda f, x, s: torch.func.jacfwd(lambda x: f(x, s)[0])(x),
    "hessian": lambda f, x, s: torch.func.hessian(lambda x: f(x, s)[0].sum())(x),
    "dual": tangents,
    "batched-gradients": many_gradients,
    "ensemble": ensemble,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@cells
def test_transforms_are_the_reference(cell: str, transform: str) -> None:
    layer = build(cell, "low-rank+diagonal", input_size=2)
    x, state = numbers(3, 2, 2), start(layer, 2)
    apply = TRANSFORMS[transform]
    actual, expected = (apply(on(backend, layer), x, state) for backend in ("native", "reference"))
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
