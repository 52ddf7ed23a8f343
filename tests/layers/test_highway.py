"""Highway layers against their equation."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import SIZE, STRUCTURES, fits
from slimrnn import BlockDiagonal, Dense, Diagonal, Highway, LowRank, Structure, UnitaryProduct, summary
from slimrnn.layers.highway_layer import HighwayLayer

REAL = {name: spec for name, spec in STRUCTURES.items() if fits(spec, False)}


def layers_of(highway: Highway) -> list[HighwayLayer]:
    return [layer for layer in highway.layers if isinstance(layer, HighwayLayer)]


def some(size: int, num_layers: int = 1, **options: Any) -> Highway:
    torch.manual_seed(3)
    highway = Highway(size, num_layers, dtype=torch.float64, **options)
    with torch.no_grad():
        for name, p in highway.named_parameters():
            if name.endswith("bias"):
                p.add_(torch.randn_like(p))
    return highway


@pytest.mark.parametrize("structure", REAL.values(), ids=REAL)
@pytest.mark.parametrize("nonlinearity", ["relu", "tanh"])
def test_equals_the_equation_with_the_matrices_written_out(structure: Structure, nonlinearity: str) -> None:
    highway = some(SIZE, 3, structure=structure, nonlinearity=nonlinearity)
    x = torch.randn(5, 2, SIZE, dtype=torch.float64)
    h = x
    for layer in layers_of(highway):
        w, w_t = layer.matrices.dense()
        assert layer.bias is not None
        b, b_t = layer.bias
        t = 1 / (1 + torch.exp(-(h @ w_t.T + b_t)))
        f = (h @ w.T + b).clamp_min(0) if nonlinearity == "relu" else torch.tanh(h @ w.T + b)
        h = t * f + (1 - t) * h
    torch.testing.assert_close(highway(x), h)


def test_batch_norm_normalises_both_products_over_all_vectors() -> None:
    highway = some(6, structure=Dense() + Diagonal(), batch_norm=True)
    (layer,) = layers_of(highway)
    assert isinstance(layer.norm, nn.BatchNorm1d)
    with torch.no_grad():
        layer.norm.weight.uniform_(0.5, 2)
    x = torch.randn(4, 5, 6, dtype=torch.float64)
    scales, biases = layer.norm.weight.view(2, 6), layer.norm.bias.view(2, 6)

    def equation(mean: Tensor, variance: Tensor) -> Tensor:
        products = torch.einsum("gmn,abn->abgm", layer.matrices.dense(), x)
        candidate, gate = ((products - mean) / (variance + 1e-5).sqrt() * scales + biases).unbind(-2)
        return torch.sigmoid(gate) * candidate.relu() + (1 - torch.sigmoid(gate)) * x

    products = torch.einsum("gmn,abn->abgm", layer.matrices.dense(), x).flatten(0, 1)
    mean, variance = products.mean(0), products.var(0, unbiased=False)
    torch.testing.assert_close(highway(x), equation(mean, variance))
    running_mean, running_var = 0.1 * mean, 0.9 + 0.1 * products.var(0)
    highway.eval()
    torch.testing.assert_close(highway(x), equation(running_mean, running_var))
    torch.testing.assert_close(highway(x[:1, :1]), equation(running_mean, running_var)[:1, :1])
    assert highway(x[:0]).shape == (0, 5, 6)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_is_between_low_rank_factors_too(tied: bool, training: bool) -> None:
    highway = some(6, structure=Diagonal() + LowRank(2, tied=tied), batch_norm=True)
    (layer,) = layers_of(highway)
    assert isinstance(layer.norm, nn.BatchNorm1d)
    x = torch.randn(9, 6, dtype=torch.float64)
    highway(x)
    highway.train(training)
    state = layer.state_dict()
    left, right = state["matrices.parts.1.left"], state["matrices.parts.1.right"].expand(2, 2, 6)
    known = {"inner": state["inner_norms.0.running_mean"], "outer": state["norm.running_mean"]}
    spread = {"inner": state["inner_norms.0.running_var"], "outer": state["norm.running_var"]}

    def normalised(values: Tensor, which: str, at: int) -> Any:
        if training:
            return (values - values.mean(0)) / (values.var(0, unbiased=False) + 1e-5).sqrt()
        width = values.shape[1]
        part = slice(at * width, (at + 1) * width)
        return (values - known[which][part]) / (spread[which][part] + 1e-5).sqrt()

    products = []
    for gate in (0, 1):
        inner = normalised(x @ right[gate].T, "inner", 0 if tied else gate)
        product = inner @ left[gate].T + x * state["matrices.parts.0.diagonal"][gate]
        products.append(normalised(product, "outer", gate) + layer.norm.bias.view(2, 6)[gate])
    t = torch.sigmoid(products[1])
    torch.testing.assert_close(highway(x), t * products[0].relu() + (1 - t) * x)


def test_dropout_is_between_low_rank_factors_too() -> None:
    """With the factor R = 1 and full rank, a dropped h and a dropped R h leave (1 − p)² of the units, scaled up."""
    torch.manual_seed(0)
    highway = Highway(40, structure=LowRank(40), dropout=0.5, transform_bias=100.0)
    with torch.no_grad():
        for factor in highway.layers[0].matrices.parameters():  # type: ignore[union-attr]
            factor.copy_(torch.eye(40).expand_as(factor))
    output = highway(torch.ones(500, 40))
    assert set(output.unique().round().tolist()) == {0.0, 4.0}
    assert float((output > 0).float().mean()) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_gates_begin_at_minus_one_and_candidates_at_zero(batch_norm: bool) -> None:
    nets = {-1.0: Highway(4, 2, batch_norm=batch_norm), 2.5: Highway(4, 2, batch_norm=batch_norm, transform_bias=2.5)}
    for expected, net in nets.items():
        for layer in layers_of(net):
            bias = layer.bias if layer.norm is None else layer.norm.bias.view(2, 4)
            assert bias is not None
            assert bias.tolist() == [[0.0] * 4, [expected] * 4]


def test_closed_gates_carry_the_input_and_open_ones_replace_it() -> None:
    x = torch.randn(3, 4)
    torch.testing.assert_close(Highway(4, 5, transform_bias=-100.0)(x), x)
    highway = Highway(4, transform_bias=100.0)
    torch.testing.assert_close(highway(x), (x @ layers_of(highway)[0].matrices.dense()[0].T).relu())


@pytest.mark.parametrize(
    ("structure", "per_layer"),
    [
        (Dense(), 2 * 64**2 + 2 * 64),
        (LowRank(8), 4 * 64 * 8 + 2 * 64),
        (LowRank(8, tied=True), 3 * 64 * 8 + 2 * 64),
        (LowRank(8) + Diagonal(), 4 * 64 * 8 + 4 * 64),
        (BlockDiagonal(4), 2 * 64**2 // 4 + 2 * 64),
    ],
    ids=repr,
)
def test_counts(structure: Structure, per_layer: int) -> None:
    assert Highway(64, 3, structure=structure).num_parameters == 3 * per_layer
    assert Highway(64, 3, structure=structure, batch_norm=True).num_parameters == 3 * (per_layer + 2 * 64)


def test_summary_shows_each_layer() -> None:
    model = nn.Sequential(Highway(64, 2, structure=LowRank(8), batch_norm=True), nn.Linear(64, 10))
    count = summary(model)
    assert [layer.name for layer in count.layers] == ["0.layers.0", "0.layers.1"]
    first = count.layers[0]
    assert (first.recurrent, first.input, first.bias, first.total) == (2048, 0, 256, 2304)
    assert (first.macs, first.dense_macs) == (2048, 2 * 64**2)
    assert (count.other, count.total) == (650, 2 * 2304 + 650)


@pytest.mark.parametrize(
    "options", [{}, {"structure": LowRank(2) + Diagonal()}, {"batch_norm": True, "structure": LowRank(3)}], ids=str
)
def test_gradients(options: dict[str, Any]) -> None:
    highway = some(4, 2, nonlinearity="tanh", **options)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    values = [p.detach().requires_grad_() for p in highway.parameters()]
    names = [name for name, _ in highway.named_parameters()]

    def call(x: Tensor, *parameters: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(highway, dict(zip(names, parameters, strict=True)), (x,))
        return result

    assert torch.autograd.gradcheck(call, (x, *values))


def test_dropout_spares_what_is_carried() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 6)
    closed = Highway(6, 3, transform_bias=-100.0, dropout=0.9)
    torch.testing.assert_close(closed(x), x)
    # With all inputs of the matrices dropped, only the biases are left: h ← (1 − σ(−1)) h.
    torch.testing.assert_close(Highway(6, dropout=1.0)(x), x * torch.sigmoid(torch.tensor(1.0)))
    highway = Highway(6, 2, dropout=0.5)
    assert not torch.equal(highway(x), highway(x))
    highway.eval()
    assert torch.equal(highway(x), highway(x))


def test_state_dict_pickle_and_copies_give_the_same() -> None:
    highway = some(6, 2, structure=LowRank(2), batch_norm=True)
    x = torch.randn(7, 6, dtype=torch.float64)
    highway(x)
    highway.eval()
    other = Highway(6, 2, structure=LowRank(2), batch_norm=True, dtype=torch.float64).eval()
    assert not torch.equal(other(x), highway(x))
    other.load_state_dict(highway.state_dict())
    for same in (other, copy.deepcopy(highway), pickle.loads(pickle.dumps(highway))):
        assert torch.equal(same(x), highway(x))
    assert highway.float()(x.float()).dtype == torch.float32


def test_takes_one_vector_or_any_number_of_axes() -> None:
    highway = some(5, 2)
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    assert highway(x).shape == x.shape
    torch.testing.assert_close(highway(x)[1, 2, 3], highway(x[1, 2, 3]))


@pytest.mark.parametrize("batch_norm", [False, True])
def test_autocast_takes_half_precision(batch_norm: bool) -> None:
    highway = Highway(8, 2, structure=LowRank(2), batch_norm=batch_norm).eval()
    x = torch.randn(3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = highway(x.bfloat16())
    assert output.dtype == torch.float32
    torch.testing.assert_close(output, highway(x), atol=0.05, rtol=0.05)


def test_can_be_exported() -> None:
    highway = Highway(8, 2, structure=LowRank(2) + Diagonal(), batch_norm=True).eval()
    x = torch.randn(3, 8)
    exported = torch.export.export(highway, (x,))
    torch.testing.assert_close(exported.module()(x), highway(x))


def test_repr_tells_what_it_is() -> None:
    assert repr(Highway(8)) == "Highway(8, structure=Dense(), parameters=144)"
    full = Highway(8, 5, structure=LowRank(2), nonlinearity="tanh", transform_bias=-2, batch_norm=True, dropout=0.5)
    assert repr(full) == (
        "Highway(8, 5, structure=LowRank(2), nonlinearity='tanh', transform_bias=-2, batch_norm=True, dropout=0.5,"
        " parameters=480)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "expected size to be at least 1, got 0"),
        ({"size": 2.5}, "expected size to be an int, got 2.5"),
        ({"num_layers": 0}, "expected num_layers to be at least 1, got 0"),
        ({"structure": "low-rank"}, r"expected structure to be a structure such as LowRank\(24\), got 'low-rank'"),
        ({"structure": LowRank(9)}, "expected a rank of at most 8 .* got 9"),
        ({"structure": UnitaryProduct()}, r"expected a complex state for UnitaryProduct\(\), got a real one"),
        ({"nonlinearity": "modrelu"}, "expected nonlinearity to be one of 'relu', 'tanh', got 'modrelu'"),
        ({"transform_bias": "low"}, "expected transform_bias to be a number, got 'low'"),
        ({"transform_bias": float("nan")}, "expected transform_bias to be finite, got nan"),
        ({"batch_norm": 1}, "expected batch_norm to be True or False, got 1"),
        ({"dropout": 1.5}, r"expected dropout in \[0, 1\], got 1.5"),
        ({"dtype": torch.complex64}, "expected a real floating dtype"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Highway(**{"size": 8, **options})


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0] * 8, "expected input to be a tensor, got list"),
        (torch.zeros(3, 7), r"expected input of shape \(\.\.\., 8\), got \(3, 7\)"),
        (torch.tensor(1.0), r"expected input of shape \(\.\.\., 8\), got \(\)"),
        (torch.zeros(3, 8, dtype=torch.float64), "expected input of dtype torch.float32, got torch.float64"),
        (torch.zeros(1, 8), "expected at least 2 vectors to normalise in training, got 1"),
    ],
)
def test_bad_input_is_refused(x: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Highway(8, batch_norm=True)(x)
