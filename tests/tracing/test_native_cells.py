"""What the native core runs for a cell is found again, but never when the cell has changed."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from both_backends import BATCH, INPUT, TIME, WIDTH, cell_of, check, equal, found, layer_with, on, start
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune
from torch.nn.utils.parametrizations import weight_norm

from registry import needs_library, numbers, randomise_
from slimrnn import GRU, LEM, LSTM, RNN, Cell, Recurrent
from slimrnn.cells import GRUCell
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops.programs import NativeCell
from slimrnn.tracing.built_in import BUILT_IN

pytestmark = needs_library


class Rated(Cell):
    """A cell with all that a step may depend on."""

    gates = ("n",)

    def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
        super().__init__(hidden_size, bias, **place)
        self.rate, self.kind, self.options, self.f = 0.5, "tanh", {"slope": [0.1, 0.2]}, torch.tanh
        self.scale = nn.Parameter(torch.rand(hidden_size, dtype=torch.float64))
        self.inner = nn.Softplus()

    def step(self, wx: Tensor, matvec: Any, state: Any) -> Any:
        z = (wx + matvec(state[0])).squeeze(-2) * self.scale
        n = self.f(z) if self.kind == "tanh" else torch.sigmoid(z)
        n = n + self.options["slope"][1] * self.inner(z) * (2 if self.training else 1)
        return (state[0] + self.rate * (n - state[0]),)


def outcome(layer: Any, x: Tensor) -> Tensor:
    layer.backend = "native"
    output: Tensor = layer(x, layer.initial_state(x.shape[1]))[0]
    return output.detach()


def change_rate(cell: Any) -> None:
    cell.rate = 0.25


def change_inside(cell: Any) -> None:
    cell.options["slope"][1] = 0.9


def change_inner(cell: Any) -> None:
    cell.inner.beta = 3.0


CHANGES: dict[str, Any] = {
    "number": change_rate,
    "text": lambda cell: setattr(cell, "kind", "sigmoid"),
    "function": lambda cell: setattr(cell, "f", torch.relu),
    "within a list": change_inside,
    "of a submodule": change_inner,
    "submodule": lambda cell: setattr(cell, "inner", nn.Tanh()),
    "eval": lambda cell: cell.eval(),
    "true is not one": lambda cell: setattr(cell, "rate", 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_attribute_is_seen(change: str) -> None:
    layer, x = layer_with(Rated), numbers(TIME, BATCH, INPUT)
    before = outcome(layer, x)
    CHANGES[change](layer.cell)
    assert not torch.allclose(outcome(layer, x), before)
    check(layer, x)


@pytest.mark.parametrize("calls", [1, 3])
def test_a_list_that_changes_in_place_is_seen(calls: int) -> None:
    def build(cell: Any, hidden: int) -> None:
        cell.coefficients = [0.5, 2.0]

    def step(c: Any, wx: Any, m: Any, s: Any) -> Any:
        return (torch.tanh((wx + m(s[0])).squeeze(-2)) * c.coefficients[0],)

    layer, x = layer_with(cell_of(step, build=build)), numbers(TIME, BATCH, INPUT)
    state = layer.initial_state(BATCH)
    before = [layer(x, state)[0] for _ in range(calls)][-1]
    cell: Any = layer.cell
    cell.coefficients[0] = 0.25
    assert not torch.allclose(layer(x, state)[0], before)


class Scaled(Cell):
    gates = ("n",)
    rate = 0.5

    def step(self, wx: Tensor, matvec: Any, state: Any) -> Any:
        return (self.rate * self.shaped((wx + matvec(state[0])).squeeze(-2)),)

    @staticmethod
    def shaped(z: Tensor) -> Tensor:
        return torch.tanh(z)


class Heir(Scaled):
    """Whose attributes stand in the class above."""


class Listed(Cell):
    gates = ("n",)
    rates = {"n": 0.5}  # noqa: RUF012 - it changes in place

    def step(self, wx: Tensor, matvec: Any, state: Any) -> Any:
        return (self.rates["n"] * torch.tanh((wx + matvec(state[0])).squeeze(-2)),)


def other_step(self: Any, wx: Tensor, matvec: Any, state: Any) -> Any:
    return (torch.sigmoid((wx + matvec(state[0])).squeeze(-2)),)


CLASS_CHANGES: dict[str, tuple[type[Cell], Any]] = {
    "number": (Heir, lambda patch: patch.setattr(Scaled, "rate", 0.25)),
    "step": (Heir, lambda patch: patch.setattr(Scaled, "step", other_step)),
    "code of step": (Heir, lambda patch: patch.setattr(Scaled.step, "__code__", other_step.__code__)),
    "method": (Heir, lambda patch: patch.setattr(Scaled, "shaped", staticmethod(torch.relu))),
    "new": (Heir, lambda patch: patch.setattr(Heir, "rate", 0.25, raising=False)),
    "within a dict": (Listed, lambda patch: patch.setitem(Listed.rates, "n", 0.25)),
}


@pytest.mark.parametrize("change", CLASS_CHANGES)
def test_a_changed_class_is_seen(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cell, act = CLASS_CHANGES[change]
    layer, x = layer_with(cell), numbers(TIME, BATCH, INPUT)
    state = layer.initial_state(BATCH)
    before = [layer(x, state)[0] for _ in range(3)][-1]
    act(monkeypatch)
    after = layer(x, state)[0]
    assert not torch.allclose(after, before)
    torch.testing.assert_close(copy.deepcopy(layer)(x, state)[0], after)
    check(layer, x)


def test_an_attribute_that_cannot_be_compared_is_looked_at_every_time() -> None:
    class Option:
        rate = 0.5

    def build(cell: Any, hidden: int) -> None:
        cell.option = Option()

    def step(c: Any, wx: Any, m: Any, s: Any) -> Any:
        return (c.option.rate * torch.tanh((wx + m(s[0])).squeeze(-2)),)

    layer, x = layer_with(cell_of(step, build=build)), numbers(TIME, BATCH, INPUT)
    state = layer.initial_state(BATCH)
    before = [layer(x, state)[0] for _ in range(3)][-1]
    cell: Any = layer.cell
    cell.option.rate = 0.25
    assert not torch.allclose(layer(x, state)[0], before)
    check(layer, x)


@pytest.mark.parametrize(
    ("layer", "name", "value"),
    [(GRU(INPUT, WIDTH, dtype=torch.float64), "reset", "before"), (LEM(INPUT, WIDTH, dtype=torch.float64), "dt", 0.3)],
)
def test_built_in_cells_change_too(layer: Any, name: str, value: Any) -> None:
    one, x = randomise_(layer).layer(0), numbers(TIME, BATCH, INPUT)
    before = outcome(one, x)
    setattr(one.cell, name, value)
    assert not torch.allclose(outcome(one, x), before)
    check(one, x)


def set_rate(stack: Any) -> None:
    stack.layer(0).cell.dt = 0.3


def set_rate_again(stack: Any) -> None:
    stack.layer(0).cell.dt = 0.5
    stack.layer(0).cell.dt = 0.3


def set_zoneout(stack: Any) -> None:
    stack.layer(0).zoneout = (0.5, 0.5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("change", [set_rate, set_rate_again, set_zoneout])
def test_torch_compile_sees_a_change(change: Any, training: bool) -> None:
    torch._dynamo.reset()
    stack, x = randomise_(LEM(INPUT, WIDTH, dtype=torch.float64)).train(training), numbers(TIME, BATCH, INPUT)
    compiled = torch.compile(stack, backend="eager")
    before = compiled(x)[0]
    torch.testing.assert_close(before, stack(x)[0])
    for _ in range(2):
        change(stack)
        torch.manual_seed(1)
        after = compiled(x)[0]
        assert not torch.allclose(after, before)
        torch.manual_seed(1)
        torch.testing.assert_close(after, stack(x)[0])


def test_torch_compile_is_not_asked_again_for_nothing() -> None:
    torch._dynamo.reset()
    stack, x = randomise_(LEM(INPUT, WIDTH, dtype=torch.float64)), numbers(TIME, BATCH, INPUT)
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(stack, backend=counter)
    for k in range(6):
        stack.train(k % 2 == 0)
        compiled(x)
        stack.zero_grad()
        stack.load_state_dict(stack.state_dict())
    assert counter.frame_count == 2


def test_the_same_cell_is_traced_once() -> None:
    a, b = Rated(WIDTH), Rated(WIDTH)
    assert found(a) is found(b)
    change_rate(b)
    assert found(a) is not found(b)


def test_parameters_are_always_fresh() -> None:
    layer, x = layer_with(Rated), numbers(TIME, BATCH, INPUT)
    with torch.no_grad():
        for p in layer.parameters():
            before = outcome(layer, x)
            p.mul_(1.5)
            assert not torch.allclose(outcome(layer, x), before)
    check(layer, x)
    scale = layer.get_parameter("cell.scale")
    scale.data = torch.full((WIDTH,), 0.25, dtype=torch.float64)
    check(layer, x)
    layer.cell.scale = nn.Parameter(torch.tensor(0.75, dtype=torch.float64))  # one number for all
    check(layer, x)


# --- torch's ways to compute a parameter ----------------------------------------------------------------------------


class Squared(nn.Module):
    def forward(self, p: Tensor) -> Tensor:
        return p * p + 0.1


def test_parametrized_parameters_act() -> None:
    layer, x = layer_with(Rated), numbers(TIME, BATCH, INPUT)
    before = outcome(layer, x)
    parametrize.register_parametrization(layer.cell, "scale", Squared())
    assert not torch.allclose(outcome(layer, x), before)
    check(layer, x)
    assert isinstance(found(layer.cell).native, NativeCell)
    parametrize.remove_parametrizations(layer.cell, "scale")
    check(layer, x)


def test_weight_norm_of_rows_of_parameters() -> None:
    layer = randomise_(LSTM(INPUT, WIDTH, peephole=True, dtype=torch.float64)).layer(0)
    name = next(n for n, p in layer.cell.named_parameters() if n != "bias" and p.dim() == 2)
    weight_norm(layer.cell, name)
    check(layer)


def test_pruned_parameters_act() -> None:
    layer, x = layer_with(Rated), numbers(TIME, BATCH, INPUT)
    before = outcome(layer, x)
    prune.l1_unstructured(layer.cell, "scale", 3)
    assert not torch.allclose(outcome(layer, x), before)
    check(layer, x)
    with torch.no_grad():
        layer.get_parameter("cell.scale_orig").mul_(2)
    check(layer, x)
    prune.remove(layer.cell, "scale")
    check(layer, x)


# --- copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_stand_for_themselves(duplicate: Any) -> None:
    stack = randomise_(Recurrent(Rated, INPUT, WIDTH, 2, dtype=torch.float64))
    layer, x = stack.layer(0), numbers(TIME, BATCH, INPUT)
    twin = duplicate(layer)
    assert twin.number != layer.number
    assert torch.equal(outcome(twin, x), outcome(layer, x))
    twin.cell = copy.deepcopy(twin.cell)
    change_rate(twin.cell)
    assert not torch.allclose(outcome(twin, x), outcome(layer, x))
    check(twin, x)
    check(layer, x)


def test_a_copy_outlives_its_original() -> None:
    layer, x = layer_with(Rated), numbers(TIME, BATCH, INPUT)
    expected, twin = outcome(layer, x), pickle.loads(pickle.dumps(layer))
    del layer
    assert torch.equal(outcome(twin, x), expected)


def test_a_native_cell_is_pickled_as_its_text() -> None:
    native = found(GRUCell(WIDTH)).native
    twin = pickle.loads(pickle.dumps(native))
    assert (twin.text, twin.program, twin.code) == (native.text, native.program, native.code)


# --- compiled and bytecode ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("width", [1, 13, 150])
@pytest.mark.parametrize("name", BUILT_IN)
def test_compiled_and_bytecode_are_the_same(
    name: str, width: int, ragged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = BUILT_IN[name]
    layer = RecurrentLayer(INPUT, make(width).double(), dtype=torch.float64)
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.2 * torch.randn_like(p))
    x, state = numbers(TIME, BATCH, INPUT), start(layer)
    lengths = torch.tensor([2, 4, 1]) if ragged else None
    compiled = on("native", layer, x, state, lengths, ragged)
    native = found(layer.cell).native
    assert native.code >= 0
    interpreted = NativeCell(native.program)
    monkeypatch.setattr(interpreted, "code", -1)
    monkeypatch.setattr(native, "struct", interpreted.struct)
    assert native.struct(width).code == -1
    equal(on("native", layer, x, state, lengths, ragged), compiled, 1e-12)
    assert torch.isfinite(compiled["output"]).all()


def test_a_cell_of_another_type_than_its_layer() -> None:
    """As where a constructor forgets the dtype that it was given."""

    class Forgetful(Rated):
        def __init__(self, hidden_size: int, bias: bool = True, **place: Any) -> None:
            super().__init__(hidden_size, bias, **place)
            self.scale = nn.Parameter(torch.rand(hidden_size, dtype=torch.float32))

    stack = Recurrent(Forgetful, INPUT, WIDTH, dtype=torch.float64)
    layer, x = stack.layer(0), numbers(TIME, BATCH, INPUT)
    whole = stack(x)[0]
    layer.backend = "reference"
    torch.testing.assert_close(stack(x)[0], whole, rtol=0, atol=1e-12)
    layer.backend = "native"
    state: Any = stack.initial_state(BATCH)
    with torch.no_grad():
        for t in range(TIME):
            y, state = stack.step(x[t], state)
            torch.testing.assert_close(y, whole[t])


def test_masks_and_whole_numbers_as_buffers() -> None:
    def build(cell: Any, hidden: int) -> None:
        cell.register_buffer("mask", torch.arange(hidden) % 2 == 0)
        cell.register_buffer("count", torch.arange(hidden))

    def step(c: Any, wx: Any, m: Any, s: Any) -> Any:
        return (torch.where(c.mask, s[0], torch.tanh((wx + m(s[0])).squeeze(-2) * c.count)),)

    check(layer_with(cell_of(step, build=build)))


def test_rnn_is_still_compiled_in_a_stack() -> None:
    assert found(RNN(INPUT, WIDTH).layer(0).cell).native.code >= 0
