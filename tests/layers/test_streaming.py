"""The lean path of `step` gives what the whole sequence does, also after a parameter has changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, parametrizations, vector_to_parameters

from registry import CELLS, FEW_PAIRS, SIZE, STRUCTURES, numbers, randomise_
from slimrnn import GRU, LSTM, RNN, Cell, Dense, LowRank, Recurrent
from slimrnn.cells.base import Matvec, State
from slimrnn.layers import RecurrentStack
from slimrnn.layers.streaming import current_stream

pytestmark = pytest.mark.skipif(GRU(1, 1).backend != "native", reason="the lean path is native")


def run(stack: RecurrentStack, x: Tensor) -> tuple[Tensor, Any]:
    state: Any = stack.initial_state(x.shape[1] if x.dim() == 3 else None)
    outputs = []
    for x_t in x:
        y, state = stack.step(x_t, state)
        outputs.append(y)
    return torch.stack(outputs), state


def check(stack: RecurrentStack, x: Tensor) -> None:
    with torch.no_grad():
        whole, last = stack(x)
        stepped, state = run(stack, x)
    torch.testing.assert_close(stepped, whole, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(state, last, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)
def test_lean_steps_are_the_whole_sequence(cell: str, structure: str) -> None:
    options = {"residual": True, "weight_norm": True, "learn_initial_state": True}
    stack = randomise_(CELLS[cell].build(4, SIZE, 2, structure=STRUCTURES[structure], **options), 0.1)
    check(stack, numbers(5, 3, 4))
    check(stack, numbers(5, 4))
    with torch.no_grad():
        assert current_stream(stack).serves is (stack.cores[0].line == len(stack.cores[0].transitions) == 1)


def test_the_first_layers_input_is_not_added() -> None:
    check(LSTM(6, 6, 2, residual=True, dtype=torch.float64), numbers(5, 3, 6))


def test_packed_weights_are_renewed() -> None:
    stack, x = LSTM(3, 8, 2, structure=LowRank(2), dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    for fused in (False, True):  # fused optimizers do not raise the version of what they change
        optimizer = torch.optim.SGD(stack.parameters(), lr=0.5, fused=fused)
        stack(x)[0].sum().backward()
        optimizer.step()
        check(stack, x)
    stack.load_state_dict(LSTM(3, 8, 2, structure=LowRank(2), dtype=torch.float64).state_dict())
    check(stack, x)
    other = LSTM(3, 8, 2, structure=LowRank(2), dtype=torch.float64).state_dict()
    stack.load_state_dict(other, assign=True)
    check(stack, x)
    for p in stack.parameters():
        p.data = p.data * 0.5
    check(stack, x)
    stack.layer(1).recurrent = Dense().build(8, 8, 4, dtype=torch.float64)
    check(stack, x)
    stack.float()
    with torch.no_grad():
        torch.testing.assert_close(run(stack, x.float())[0], stack(x.float())[0])


def test_fixed_leaks_are_renewed_too() -> None:
    stack, x = GRU(3, 8, leak=0.5, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    leak = stack.layer(0).leak
    assert leak is not None
    leak.get_buffer("alpha").fill_(0.9)
    check(stack, x)
    leak.alpha = torch.full((8,), 0.2, dtype=torch.float64)
    check(stack, x)


def new_vectors(stack: RecurrentStack) -> None:
    """As evolution strategies do: the next vector but one may get a vector's memory."""
    x, h = numbers(2, 3), stack.initial_state(2)
    with torch.no_grad():
        for _ in range(3):
            for _ in range(2):
                vector_to_parameters(parameters_to_vector(stack.parameters()) + 0.1, stack.parameters())
            stack.step(x, h)


def through_numpy(stack: RecurrentStack) -> None:
    for p in stack.parameters():
        p.detach().numpy()[..., 0] += 0.25


def each(change: Callable[[Tensor], Any]) -> Callable[[RecurrentStack], None]:
    def apply(stack: RecurrentStack) -> None:
        for p in stack.parameters():
            change(p.data)

    return apply


def swap_rows(data: Tensor) -> None:
    data.copy_(data.flip(0).flip(-1).clone())


def transpose(stack: RecurrentStack) -> None:
    weight = stack.layer(1).recurrent.get_parameter("weight")
    weight.data = weight.data.mT  # the same memory, read otherwise


def table(stack: RecurrentStack) -> None:
    old = stack.layer(1).recurrent
    old._parameters["weight"] = nn.Parameter(old.get_parameter("weight").detach() * 2)


INVISIBLE = {  # to torch's version counters
    "data, added to": each(lambda data: data.add_(0.25)),
    "data, one number": each(lambda data: data.view(-1)[-1:].mul_(-1)),
    "data, all signs": each(lambda data: data.neg_()),
    "data, reordered": each(swap_rows),
    "numpy": through_numpy,
    "vectors": new_vectors,
}
ATTRIBUTES: dict[str, Callable[[RecurrentStack], Any]] = {
    "transposed view": transpose,
    "table of parameters": table,
    "residual": lambda stack: setattr(stack, "residual", False),
    "backend": lambda stack: setattr(stack, "backend", "reference"),
    "backend of a layer": lambda stack: setattr(stack.layer(1), "backend", "reference"),
    "cell's equation": lambda stack: setattr(stack.layer(1).cell, "nonlinearity", "relu"),
    "method of a cell": lambda stack: setattr(stack.layer(1).cell, "input_bias", lambda: None),
    "parametrization": lambda stack: parametrizations.orthogonal(stack.layer(1).recurrent, "weight"),
}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("change", INVISIBLE)
def test_steps_see_every_change_of_the_weights(change: str, structure: str) -> None:
    cell = next(name for name, known in FEW_PAIRS if known == structure)
    stack, x = CELLS[cell].build(3, SIZE, 2, structure=STRUCTURES[structure], weight_norm=True), numbers(4, 2, 3)
    check(randomise_(stack, 0.1), x)
    INVISIBLE[change](stack)
    check(stack, x)


@pytest.mark.parametrize("change", ATTRIBUTES)
def test_steps_see_changed_attributes(change: str) -> None:
    stack, x = RNN(3, 8, 2, residual=True, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    ATTRIBUTES[change](stack)
    check(stack, x)


class Scaled(Cell):
    """With a module of torch's inside."""

    gates = ("n",)

    def __init__(self, hidden_size: int, **options: Any) -> None:
        super().__init__(hidden_size, **options)
        self.norm = nn.LayerNorm(hidden_size, dtype=torch.float64)

    def step(self, wx: Tensor, matvec: Matvec, state: State) -> State:
        return (torch.tanh(self.norm((wx + matvec(state[0])).squeeze(-2))),)


def test_attributes_of_foreign_modules_are_seen() -> None:
    stack, x = Recurrent(Scaled, 3, 8, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    norm = stack.layer(0).cell.norm
    assert isinstance(norm, nn.LayerNorm)
    norm.eps = 0.5
    slow = copy.deepcopy(stack)
    slow.backend = "reference"
    with torch.no_grad():
        torch.testing.assert_close(run(stack, x), run(slow, x), rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(stack(x), slow(x), rtol=1e-11, atol=1e-11)


def test_changes_of_other_modules_do_not_matter() -> None:
    stack, x = LSTM(3, 8, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    packed = stack.__dict__["_stream"]
    GRU(1, 1).eval()
    stack.residual = False  # as it was
    check(stack, x)
    assert stack.__dict__["_stream"] is packed


@pytest.mark.parametrize("change", ["cell's equation", "table of parameters", "transposed view"])
def test_whole_sequences_see_changes_too(change: str) -> None:
    stack, x = RNN(3, 8, 2, dtype=torch.float64), numbers(4, 2, 3)
    stack(x)
    ATTRIBUTES[change](stack)
    slow = copy.deepcopy(stack)
    slow.backend = "reference"
    torch.testing.assert_close(stack(x), slow(x), rtol=1e-11, atol=1e-11)


LARGE: dict[str, Callable[[RecurrentStack], Any]] = {
    **INVISIBLE,
    "one column": lambda stack: stack.layer(0).recurrent.get_parameter("weight").data[:, :, 17].add_(1),
    "one number, seen by torch": lambda stack: stack.layer(0).recurrent.get_parameter("weight")[0, 3, 5].add_(1),
}
del LARGE["data, one number"], LARGE["numpy"]


@pytest.mark.parametrize("change", LARGE)
def test_steps_see_changes_of_large_layers(change: str) -> None:
    stack, x = RNN(3, 400, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    with torch.no_grad():
        LARGE[change](stack)
    check(stack, x)


def test_single_numbers_of_large_layers_are_seen_in_turn() -> None:
    stack, x, h = RNN(3, 400, dtype=torch.float64), numbers(2, 3), numbers(1, 2, 400)
    check(stack, x.unsqueeze(0))
    stack.layer(0).recurrent.get_parameter("weight").detach().numpy()[0, 399, 399] += 1
    with torch.no_grad():
        for _ in range(12):  # slices of 128 KiB in 1.3 MB
            stack.step(x, h)
    check(stack, x.unsqueeze(0))


def test_unchanged_layers_are_packed_once() -> None:
    stack, x = LSTM(3, 8, 2, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    with torch.no_grad():
        packed = current_stream(stack)
        check(stack, x)
        assert stack.__dict__["_stream"] is packed


def test_fixed_weights_are_a_promise() -> None:
    stack, x, state = GRU(3, 8, dtype=torch.float64), numbers(2, 3), numbers(1, 2, 8)
    with torch.no_grad(), stack.fixed_weights():
        before, _ = stack.step(x, state)
        with stack.fixed_weights():
            through_numpy(stack)
        unseen, _ = stack.step(x, state)
        assert torch.equal(unseen, before)
    check(stack, numbers(4, 2, 3))


@pytest.mark.parametrize("build", [GRU, LSTM])
def test_views_take_lean_steps(build: type[RecurrentStack]) -> None:
    stack, x = build(3, 8, 2, dtype=torch.float64), numbers(4, 2, 3)  # type: ignore[arg-type]
    batch_first = x.transpose(0, 1).contiguous()
    state = stack.initial_state(2)
    apart = tuple(s.mT.contiguous().mT for s in state) if isinstance(state, tuple) else state.mT.contiguous().mT
    with torch.no_grad():
        expected = stack.step(x[1].clone(), state)
        found = current_stream(stack).step(batch_first[:, 1], apart)
    assert not batch_first[:, 1].is_contiguous()
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_layers_of_inference_mode_take_lean_steps() -> None:
    moved, x = GRU(3, 8), numbers(4, 2, 3)
    with torch.inference_mode():
        made = GRU(3, 8, dtype=torch.float64)
        moved.double()
    for stack in (made, moved):
        check(stack, x)
        with torch.no_grad():
            assert current_stream(stack).step(x[0], stack.initial_state(2)) is not None
        through_numpy(stack)
        check(stack, x)


def test_groups_of_units_take_ordinary_steps() -> None:
    stack, x = GRU(3, 8, delays=[1, 1], dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    with torch.no_grad(), pytest.raises(ValueError, match=r"expected an initial state of shape \(1, 2, 8\)"):
        stack.step(x[0], numbers(2, 2, 8))


def test_packed_weights_stay_behind_in_copies_and_pickles() -> None:
    stack, x = GRU(3, 8, dtype=torch.float64), numbers(4, 2, 3)
    check(stack, x)
    assert "_stream" in stack.__dict__
    twin = copy.deepcopy(stack)
    assert "_stream" not in twin.__dict__
    check(twin, x)


def test_steps_with_autograd_are_differentiable() -> None:
    stack, x = GRU(3, 8, dtype=torch.float64), numbers(4, 2, 3)
    run(stack, x)[0].sum().backward()
    assert all(p.grad is not None for p in stack.parameters())


def test_zoneout_draws_anew_in_every_step() -> None:
    stack = randomise_(GRU(3, 64, zoneout=0.5, dtype=torch.float64), 0.1)
    x, kept = numbers(4, 1, 3), []
    state: Any = torch.ones(1, 1, 64, dtype=torch.float64)
    with torch.no_grad():
        for x_t in x:
            before, (_, state) = state, stack.step(x_t, state)
            kept.append(state == before)
    assert not any(torch.equal(a, b) for a, b in pairwise(kept))
    assert all(0.2 < float(mask.double().mean()) < 0.8 for mask in kept)
    check(stack.eval(), x)


def test_a_hook_that_comes_later_is_seen() -> None:
    stack = GRU(3, SIZE, dtype=torch.float64).eval()
    x = numbers(2, 4, 3)

    def fill(cell: nn.Module, _: Any) -> None:
        with torch.no_grad():
            cell.get_parameter("bias").fill_(2.0)

    with torch.no_grad():
        _, state = stack.step(x[0])
        stack.step(x[0], state)
        stack.cell.register_forward_pre_hook(fill)
        y, _ = stack.step(x[1], state)
        torch.testing.assert_close(y, stack(x[1:], state)[0][0], rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_a_layer_that_is_set_to_training_alone_is_seen() -> None:
    torch.manual_seed(0)
    rnn = GRU(3, 16, zoneout=0.5, dtype=torch.float64).eval()
    x, state = numbers(2, 3), numbers(1, 2, 16)
    still = rnn.step(x, state)[0]
    rnn.layers[0].train()
    assert not torch.equal(rnn.step(x, state)[0], rnn.step(x, state)[0])
    rnn.layers[0].eval()
    assert torch.equal(rnn.step(x, state)[0], still)
    rnn.zoneout, rnn.recurrent_dropout = 0.0, 0.5
    rnn.step(x, state)
    rnn.layers[0].train()
    with pytest.raises(RuntimeError, match=r"expected eval\(\) for step with recurrent_dropout"):
        rnn.step(x, state)
