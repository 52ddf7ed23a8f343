"""replace: the same outputs and gradients from layers of ours, wherever torch's were."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from replace_nets import KINDS, WIDTH, Block, Net, inputs, nets
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from registry import numbers
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, LowRank, replace
from slimrnn.compression import replacements
from slimrnn.layers import RecurrentStack

TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-12}
# Through up to five layers one after the other, the float32 gradients of torch's own net are up to 8e-6 away from those
# in float64, and ours up to 3e-6; a single layer's are held to 1e-6 below.
OF_GRADIENTS = {torch.float32: 1e-5, torch.float64: 1e-12}


def difference(found: Tensor, expected: Tensor) -> float:
    """The largest, relative to the largest number where that is above one."""
    found, expected = found.detach(), expected.detach()
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1))


def run(net: nn.Module, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Output, and gradients of the input and of all parameters that are no recurrent layer's."""
    x = x.clone().requires_grad_()
    output = net(x)
    names, parameters = zip(*((n, p) for n, p in net.named_parameters() if "rnn." not in n), strict=True)
    gradients = torch.autograd.grad(output.square().mean(), (x, *parameters))
    return output, dict(zip(("x", *names), gradients, strict=True))


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_outputs_and_gradients_stay_the_same(dtype: torch.dtype) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(nets(dtype))
    def check(net: Net) -> None:
        net.eval()
        theirs = copy.deepcopy(net)
        assert replace(net) is net
        assert not any(isinstance(module, nn.RNNBase) for module in net.modules())
        (expected, gradients), (found, ours) = run(theirs, inputs(dtype)), run(net, inputs(dtype))
        assert difference(found, expected) < TOLERANCES[dtype]
        assert gradients.keys() == ours.keys()
        for name, gradient in gradients.items():
            assert difference(ours[name], gradient) < OF_GRADIENTS[dtype], name

    check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}], ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_gradients_of_a_layer_stay_the_same(kind: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    torch_type, own = KINDS[kind]
    make: Any = torch_type
    theirs = Block(make(WIDTH, 6, batch_first=True, dtype=dtype, **options, **own), packed=False)
    ours = replace(copy.deepcopy(theirs))
    (expected, gradients), (found, of_ours) = run(theirs, inputs(dtype)), run(ours, inputs(dtype))
    assert difference(found, expected) < TOLERANCES[dtype]
    for name, gradient in gradients.items():
        assert difference(of_ours[name], gradient) < TOLERANCES[dtype], name


@settings(max_examples=10, deadline=None, derandomize=True)
@given(nets(torch.float64))
def test_the_checkpoint_of_the_model_loads_into_the_replaced_one(net: Net) -> None:
    net.eval()
    other = replace(copy.deepcopy(net))
    for p in other.parameters():
        nn.init.zeros_(p)
    other.load_state_dict(net.state_dict())
    assert difference(other(inputs(torch.float64)), net(inputs(torch.float64))) < 1e-12


def test_dropout_draws_the_same_masks() -> None:
    theirs = nn.LSTM(3, 8, 3, dropout=0.5, dtype=torch.float64)
    x, outputs = numbers(5, 2, 3), []
    for layer in (theirs, replace(theirs)):
        torch.manual_seed(1)
        outputs.append(layer(x)[0])
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("torch_type", "ours"), [(nn.RNN, RNN), (nn.GRU, GRU), (nn.LSTM, LSTM)])
def test_a_layer_alone_is_replaced_and_stays_itself(torch_type: Any, ours: type[RecurrentStack]) -> None:
    layer = torch_type(3, 4)
    replaced = replace(layer)
    assert type(replaced) is ours
    assert isinstance(layer, nn.RNNBase)


def test_a_structure_gives_its_nearest_member() -> None:
    model = nn.ModuleDict({"a": nn.LSTM(3, 6), "b": nn.GRU(3, 4)})
    expected = LSTM.from_torch(copy.deepcopy(model["a"]), structure=LowRank(2))  # type: ignore[arg-type]
    found = replace(model, LowRank(2))["a"]
    x = torch.randn(4, 2, 3)
    torch.testing.assert_close(found(x)[0], expected(x)[0])
    assert isinstance(model["b"], GRU)
    assert model["b"].structure == LowRank(2)


def test_a_structure_that_fits_not_all_layers_changes_none() -> None:
    model = nn.ModuleDict({"a": nn.LSTM(3, 6), "b": nn.GRU(3, 4)})
    before = dict(model.items())
    with pytest.raises(ValueError, match=r"^b: expected"):
        replace(model, BlockDiagonal(3))
    assert dict(model.items()) == before


def test_a_shared_layer_stays_shared() -> None:
    model = nn.ModuleDict({"a": nn.GRU(3, 3), "b": nn.Sequential(nn.Identity())})
    model["b"].append(model["a"])  # type: ignore[operator]
    assert str(replacements(model)) == "a = b.1  nn.GRU(3, 3)  becomes slimrnn.GRU"
    replace(model)
    assert model["a"] is model["b"][1]  # type: ignore[index]
    assert isinstance(model["a"], GRU)


@pytest.mark.parametrize(
    ("where", "replaced"),
    [
        ("encoder.*", {"encoder.0", "encoder.1"}),
        (["*.1", "head"], {"encoder.1", "head"}),
        (lambda name, module: module.hidden_size == 4, {"encoder.1"}),
        ("*", {"encoder.0", "encoder.1", "head"}),
    ],
)
def test_where_chooses_by_pattern_or_function(where: Any, replaced: set[str]) -> None:
    encoder = nn.Sequential(nn.GRU(3, 3), nn.GRU(3, 4))
    model = nn.ModuleDict({"encoder": encoder, "head": nn.LSTM(4, 2)})
    replace(model, where=where)
    assert {name for name, module in model.named_modules() if isinstance(module, RecurrentStack)} == replaced


def test_mode_frozen_parameters_and_attributes_are_kept() -> None:
    layer = nn.LSTM(3, 4, 2, dtype=torch.float64).eval()
    layer.weight_hh_l0.requires_grad_(False)
    layer.bias_ih_l1.requires_grad_(False)
    layer.bias_hh_l1.requires_grad_(False)
    layer.bias_ih_l0.requires_grad_(False)  # the sum with the other one is still to be trained
    layer.note = "mine"
    ours = replace(layer)
    frozen = {name for name, p in ours.named_parameters() if not p.requires_grad}
    assert frozen == {"layers.0.recurrent.weight", "layers.1.cell.bias"}
    assert not ours.training
    assert {p.dtype for p in ours.parameters()} == {torch.float64}
    assert ours.note == "mine"


def test_hooks_move_and_their_handles_still_remove_them() -> None:
    seen: list[str] = []
    layer = nn.GRU(3, 4)
    handles = [
        layer.register_forward_pre_hook(lambda *_: seen.append("before")),
        layer.register_forward_hook(lambda *_, **__: seen.append("after"), with_kwargs=True),
        layer.register_full_backward_hook(lambda *_: seen.append("backward")),
    ]
    ours = replace(nn.ModuleList([layer]))[0]
    ours(torch.randn(2, 1, 3, requires_grad=True))[0].sum().backward()
    assert seen == ["before", "after", "backward"]
    for handle in handles:
        handle.remove()
    ours(torch.randn(2, 1, 3))
    assert len(seen) == 3


class Own(nn.LSTM):
    """Not for us to know what it computes."""


def tied() -> nn.Module:
    model = nn.ModuleList([nn.GRU(3, 3), nn.GRU(3, 3)])
    model[1].weight_hh_l0 = model[0].weight_hh_l0
    return model


def with_a_frozen_bias() -> nn.GRU:
    layer = nn.GRU(3, 4)
    layer.bias_ih_l0.requires_grad_(False)
    return layer


def with_another_forward() -> nn.GRU:
    layer = nn.GRU(3, 4)
    layer.forward = lambda x: x  # type: ignore[method-assign, assignment]
    return layer


def with_a_parameter_hook() -> nn.GRU:
    layer = nn.GRU(3, 4)
    layer.get_parameter("weight_hh_l0").register_hook(lambda gradient: 2 * gradient)
    return layer


def with_a_state_dict_hook() -> nn.GRU:
    layer = nn.GRU(3, 4)
    layer.register_load_state_dict_pre_hook(lambda *_: None)
    return layer


def out_of_sight() -> nn.Module:
    model = nn.Module()
    model.rnns = [nn.GRU(3, 4)]  # type: ignore[assignment]
    return model


STAY: dict[str, tuple[Any, str]] = {
    "projection": (lambda: nn.LSTM(3, 4, proj_size=2), "proj_size=2: slimrnn has no projection"),
    "subclass": (lambda: Own(3, 4), r"a class of its own; .* slimrnn.LSTM.from_torch"),
    "cell": (lambda: nn.LSTMCell(3, 4), "a single step"),
    "parametrized": (lambda: parametrizations.weight_norm(nn.GRU(3, 4), "weight_hh_l0"), "weight_hh_l0 is computed"),
    "pruned": (lambda: prune.l1_unstructured(nn.GRU(3, 4), "weight_ih_l0", 0.5), "weight_ih_l0 is computed"),
    "scripted": (lambda: torch.jit.script(nn.GRU(3, 4)), "compiled by torch.jit"),
    "tied": (tied, "weight_hh_l0 is a parameter of something else"),
    "frozen in part": (with_a_frozen_bias, "of bias_ih_l0 and bias_hh_l0 one is frozen"),
    "another forward": (with_another_forward, "its forward has been replaced"),
    "parameter hook": (with_a_parameter_hook, "its parameters have hooks"),
    "state_dict hook": (with_a_state_dict_hook, "hooks on its state_dict"),
    "plain list": (out_of_sight, "in rnns, where nn.Module does not see it"),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("kind", STAY)
def test_what_cannot_be_replaced_stays_and_is_told(kind: str) -> None:
    make, reason = STAY[kind]
    model = nn.ModuleDict({"odd": make(), "even": nn.GRU(3, 4)})
    with pytest.warns(UserWarning, match=rf"replace left . recurrent module.*odd.*{reason}"):
        replace(model)
    assert isinstance(model["even"], GRU)
    assert not any(isinstance(module, RecurrentStack) for module in model["odd"].modules())
    with pytest.raises(ValueError, match=rf"expected an nn.RNN, nn.GRU or nn.LSTM to replace, got .*stays: .*{reason}"):
        replace(make())


def test_quantized_layers_stay() -> None:
    class LSTM(nn.Module):
        """Stands for torch's, which cannot be made without a warning."""

    LSTM.__module__ = "torch.ao.nn.quantized.dynamic.modules.rnn"
    with pytest.raises(ValueError, match=r"stays: quantized: .* slimrnn.quantize"):
        replace(nn.Sequential(LSTM()))


def test_only_what_was_asked_for_is_warned_of() -> None:
    model = nn.ModuleDict({"a": nn.GRU(3, 4), "b": nn.LSTM(3, 4, proj_size=2)})
    replace(model, where="a")
    assert str(replacements(model, where="a")).splitlines()[1].endswith("stays: not asked for by where")


def test_replacing_again_changes_nothing() -> None:
    model = replace(nn.Sequential(nn.GRU(3, 4)))
    before = model[0]
    assert replace(model)[0] is before


def test_the_log_tells_what_was_done(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "slimrnn"):
        replace(nn.Sequential(nn.ReLU(), nn.GRU(3, 4)))
    assert [record.message for record in caplog.records] == ["replace: 1: nn.GRU(3, 4) becomes slimrnn.GRU"]


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="got Linear, which has none"):
        replace(nn.Linear(2, 3))
    with pytest.raises(TypeError, match=r"expected a torch.nn.Module, got dict"):
        replace({})  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="expected where to be a pattern"):
        replace(nn.GRU(2, 3), where=3)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"with where='decoder\.\*', of which all stays: encoder: .*not asked for"):
        replace(nn.ModuleDict({"encoder": nn.GRU(2, 3)}), where="decoder.*")


def test_wrapped_models_are_refused() -> None:
    class DistributedDataParallel(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module

    with pytest.raises(ValueError, match="wrapped for several processes afterwards, got DistributedDataParallel"):
        replace(DistributedDataParallel(nn.GRU(2, 3)))


def test_a_compiled_model_sees_the_new_layer() -> None:
    torch._dynamo.reset()
    model = nn.Sequential(nn.GRU(3, 4))
    compiled: Any = torch.compile(model, backend="eager")
    x = torch.randn(5, 2, 3)
    before = compiled(x)[0]
    replace(compiled)
    assert isinstance(model[0], RecurrentStack)
    torch.testing.assert_close(compiled(x)[0], before)
