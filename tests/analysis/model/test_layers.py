"""Recurrent layers are found anywhere in a model, ours and torch.nn's, and run as the model runs them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from registry import CELLS, randomise_
from slimrnn import GRU, LSTM, RNN, BlockDiagonal, ContextSwitching, Kronecker, LowRank, OutputRecurrent
from slimrnn.analysis import LayerView, find_layers, layer_inputs
from slimrnn.layers import RecurrentLayer

TORCH: dict[str, Any] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Tagger(nn.Module):
    """Symbols through an embedding and two recurrent nets, one of ours and one of torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 3)
        self.first = nn.LSTM(3, 4, bidirectional=True, batch_first=True, dropout=0.5, num_layers=2)
        self.second = nn.ModuleDict({"top": GRU(8, 5, structure=LowRank(2), batch_first=True)})

    def forward(self, symbols: Tensor) -> Tensor:
        hidden, _ = self.first(self.table(symbols))
        output: Tensor = self.second["top"](hidden)[0]
        return output


def test_layers_are_found_by_name_in_any_model() -> None:
    views = find_layers(Tagger())
    names = ["first.l0", "first.l0_reverse", "first.l1", "first.l1_reverse", "second.top.l0"]
    assert [view.name for view in views] == names
    assert [view.kind for view in views] == ["lstm"] * 4 + ["gru"]
    assert [view.reverse for view in views] == [False, True, False, True, False]
    assert [view.depth for view in views] == [0, 0, 1, 1, 0]
    assert [view.hidden_size for view in views] == [4, 4, 4, 4, 5]
    assert [view.structure for view in views] == ["Dense()"] * 4 + ["LowRank(2)"]
    assert list(views[-1].maps) == ["r", "u", "n"]


def test_layers_within_other_modules_are_found_once() -> None:
    switching = ContextSwitching(RNN(4, 6, structure=BlockDiagonal(2)))
    assert [view.name for view in find_layers(switching)] == ["layer.l0", "auxiliary.l0"]
    (alone,) = find_layers(nn.Sequential(RecurrentLayer(2, RNN(2, 3).cell)))
    assert (alone.name, alone.kind, alone.stack) == ("0", "rnn", None)
    shared = GRU(2, 3)
    assert len(find_layers(nn.ModuleList([shared, shared]))) == 1


def test_every_map_of_the_state_has_a_name() -> None:
    (deep,) = find_layers(GRU(2, 3, transition_depth=2))
    assert list(deep.maps) == ["r", "u", "n", "r.2", "u.2", "n.2"]
    (skipping,) = find_layers(RNN(2, 3, skip=4))
    assert list(skipping.maps) == ["h", "h.skip"]
    groups = find_layers(LSTM(2, 6, delays=(1, 3)))
    assert [(view.name, view.hidden_size) for view in groups] == [("l0_group0", 3), ("l0_group1", 3)]


@pytest.mark.parametrize("kind", TORCH)
def test_matrices_of_torch_layers_are_theirs(kind: str) -> None:
    layer: Any = TORCH[kind](3, 4, num_layers=2, bidirectional=True)
    for view in find_layers(layer):
        suffix = f"_l{view.depth}" + ("_reverse" if view.reverse else "")
        weight = getattr(layer, "weight_hh" + suffix).unflatten(0, (-1, 4))
        for map, gate in view.maps.values():
            assert torch.equal(map.dense()[gate], weight[gate])


def newest(view: LayerView, states: tuple[Tensor, ...]) -> Tensor:
    """The outputs that belong to the states after every step."""
    return states[0][1:, :, : view.hidden_size]


@pytest.mark.parametrize("kind", TORCH)
def test_states_of_torch_layers_are_their_outputs(kind: str) -> None:
    torch.manual_seed(0)
    layer: Any = TORCH[kind](3, 4, num_layers=2, bidirectional=True, batch_first=True, dtype=torch.float64)
    x, lengths = torch.randn(2, 6, 3, dtype=torch.float64), torch.tensor([6, 4])
    h0 = torch.randn(4, 2, 4, dtype=torch.float64)
    hx = (h0, torch.randn_like(h0)) if kind == "lstm" else h0
    packed, last = layer(pack_padded_sequence(x, lengths, batch_first=True), hx)
    output = nn.utils.rnn.pad_packed_sequence(packed)[0]
    views = find_layers(layer)
    ends = (last,) if isinstance(last, Tensor) else last
    for index, view in enumerate(views):
        states = view.states(x, hx, lengths)
        for state, end in zip(states, ends, strict=True):
            torch.testing.assert_close(state[-1], end[index])
    forwards, backwards = (newest(view, view.states(x, hx, lengths)) for view in views[2:])
    torch.testing.assert_close(forwards[:4], output[:4, :, :4])
    torch.testing.assert_close(backwards.flip(0)[:, 0], output[:, 0, 4:])
    torch.testing.assert_close(backwards[:4].flip(0)[:, 1], output[:4, 1, 4:])


@pytest.mark.parametrize("options", [{}, {"delays": 3}, {"skip": 2}, {"delays": (1, 2)}, {"residual": True}], ids=str)
@pytest.mark.parametrize("name", ["tanh", "modrelu", "lstm-peephole", "gru-before", "gru-leaky-deep"])
def test_states_of_our_layers_are_their_outputs(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    stack = randomise_(CELLS[name].build(3, 4, 3, **options))
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    output, _ = stack(x)
    tops = [view for view in find_layers(stack) if view.depth == 2]
    shown = torch.cat([newest(view, view.states(x)) for view in tops], -1)
    if stack.residual:  # what the top layer's own output is added to
        output = output - tops[0].reads(x)[0]
    torch.testing.assert_close(torch.cat([shown.real, shown.imag], -1) if shown.is_complex() else shown, output)


def test_inputs_are_those_of_the_running_model() -> None:
    model, symbols = Tagger(), torch.randint(7, (2, 9))
    assert model.training
    given = layer_inputs(model, symbols)
    assert model.first.training
    assert list(given) == ["first", "second.top"]
    torch.testing.assert_close(given["first"].x, model.table(symbols))
    torch.testing.assert_close(given["second.top"].x, model.first.eval()(model.table(symbols))[0])
    top = find_layers(model)[-1]
    states = top.states(given["second.top"].x)[0]
    torch.testing.assert_close(states[1:].transpose(0, 1).float(), model(symbols))


def test_packed_inputs_are_padded() -> None:
    class Packing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(2, 3, batch_first=True)

        def forward(self, x: Tensor, lengths: Tensor) -> object:
            return self.rnn(pack_padded_sequence(x, lengths, batch_first=True))

    x = torch.randn(2, 5, 2)
    given = layer_inputs(Packing(), x, torch.tensor([5, 3]))["rnn"]
    assert given.lengths is not None
    assert given.lengths.tolist() == [5, 3]
    assert torch.equal(given.x[0], x[0])
    assert torch.equal(given.x[1, :3], x[1, :3])


def test_a_layer_called_step_by_step_has_no_sequence() -> None:
    class Stepping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(2, 3)

        def forward(self, x: Tensor) -> None:
            for step in x.split(1):
                self.rnn(step)

    with pytest.raises(ValueError, match="expected one call of rnn, with a whole sequence, got 5"):
        layer_inputs(Stepping(), torch.randn(5, 1, 2))


def test_bad_input_has_a_message() -> None:
    with pytest.raises(ValueError, match=r"expected a model with an RNN, GRU or LSTM .*, got Linear without one"):
        find_layers(nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"without one \(but with GRUCell\)"):
        find_layers(nn.Sequential(nn.GRUCell(2, 3)))
    with pytest.raises(TypeError, match="expected a torch module, got int"):
        find_layers(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected LSTMs without projection, got proj_size=2 in 0"):
        find_layers(nn.Sequential(nn.LSTM(2, 3, proj_size=2)))
    (view,) = find_layers(RNN(2, 4, structure=Kronecker([2, 2])))
    with pytest.raises(ValueError, match=r"expected x of shape \(..., 2\).*, got \(5, 3\)"):
        view.states(torch.zeros(5, 3))
    with pytest.raises(ValueError, match="expected finite numbers in x"):
        view.states(torch.full((5, 2), torch.nan))
    with pytest.raises(TypeError, match=r"expected x to be a tensor of real numbers, got torch\.int64"):
        view.states(torch.zeros(5, 2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"expected an initial state of shape \(1, 1, 4\), got \(1, 1, 3\)"):
        view.states(torch.zeros(5, 2), torch.zeros(1, 3))
    (fed_back,) = find_layers(OutputRecurrent(2, 3, 1))
    with pytest.raises(ValueError, match="expected a layer that x alone drives, got OutputRecurrent"):
        fed_back.states(torch.zeros(5, 2))


def test_resets_are_refused_where_there_are_some() -> None:
    class Episodes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = GRU(2, 3)

        def forward(self, x: Tensor, resets: Tensor) -> Any:
            return self.rnn(x, resets=resets)

    resets = torch.zeros(5, 1, dtype=torch.bool)
    assert layer_inputs(Episodes(), torch.randn(5, 1, 2), resets)["rnn"].x.shape == (5, 1, 2)
    resets[2] = True
    with pytest.raises(ValueError, match="expected sequences without resets, got some"):
        layer_inputs(Episodes(), torch.randn(5, 1, 2), resets)
