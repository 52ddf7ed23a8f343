"""The memory doctor's findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

import slimrnn
from slimrnn import GRU, LSTM, RNN, FullUnitary, Kronecker
from slimrnn.analysis import Diagnosis, diagnose
from slimrnn.analysis.doctor._threads import _openblas, one_thread

STEPS = 48


class Net(nn.Module):
    """Some layers inside a module."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"rnn": rnn})

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.inner["rnn"](x)[0]
        return output


class StepByStep(nn.Module):
    """A layer that is called once for every step."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(2, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = None
        for x_t in x.unbind(0):
            output, state = self.rnn(x_t.unsqueeze(0), state)
        assert isinstance(output, Tensor)
        return output


def batch(steps: int = STEPS, sequences: int = 4) -> Tensor:
    return torch.randn(steps, sequences, 2, generator=torch.Generator().manual_seed(1))


def contracting_gru() -> GRU:
    """All conditions of theorem 1.1 hold, and it does not look like a new one."""
    gru = GRU(2, 6)
    with torch.no_grad():
        bias = gru.layer(0).cell.bias
        assert bias is not None
        bias.fill_(0.01)
        for parameter in gru.layer(0).recurrent.parameters():
            parameter.mul_(0.4)
    return gru


def said(diagnosis: Diagnosis, severity: str) -> str:
    return "\n".join(str(finding) for finding in diagnosis.findings if finding.severity == severity)


@pytest.mark.parametrize("rnn", [nn.RNN(2, 5), nn.GRU(2, 5), nn.LSTM(2, 5), RNN(2, 5), GRU(2, 5), LSTM(2, 5)])
def test_finds_the_layers_of_any_module(rnn: nn.Module) -> None:
    (layer,) = diagnose(Net(rnn), batch(20)).layers
    assert layer.name == "inner.rnn.l0"
    assert (layer.steps, layer.sequences) == (20, 4)
    assert layer.reach is not None
    assert layer.input_reach is not None
    assert layer.gates
    assert layer.memory_range is not None
    assert layer.capacity is not None
    assert len(layer.spectra) == len(layer.view.maps)


def test_measures_every_layer_and_direction() -> None:
    diagnosis = diagnose(Net(nn.LSTM(2, 3, num_layers=2, bidirectional=True)), batch(20))
    assert [layer.name for layer in diagnosis.layers] == [
        f"inner.rnn.{name}" for name in ("l0", "l0_reverse", "l1", "l1_reverse")
    ]
    assert [layer.gates[0].backward for layer in diagnosis.layers] == [False, True, False, True]
    assert "one direction" in diagnosis.layers[-1].left_out["capacity"]


def test_under_theorem_1_1_a_gru_is_short_range_and_a_fixed_unitary_net_is_not() -> None:
    (gated,) = diagnose(contracting_gru(), batch()).layers
    (unitary,) = diagnose(RNN(2, 8, nonlinearity="modrelu", structure=FullUnitary()), batch()).layers
    assert gated.memory_range is not None
    assert gated.memory_range.theorem
    assert gated.memory_range.short_range
    assert unitary.memory_range is not None
    assert not unitary.memory_range.short_range


def test_a_short_memory_is_told_with_its_numbers_and_advice() -> None:
    diagnosis = diagnose(contracting_gru(), batch(200))
    problems = said(diagnosis, "problem")
    assert "gradients fall tenfold every" in problems
    assert "begin with update_bias spread over the units from 0 to ln(200 − 1) = 5.3, update_bias=(0, 5.3)" in problems
    assert "as theorem 1.1 says" in said(diagnosis, "hint")
    assert "What limits it most: spectral radius 0." in " ".join(str(diagnosis).split())


def test_a_unitary_net_has_nothing_to_change() -> None:
    diagnosis = diagnose(RNN(2, 8, nonlinearity="modrelu", structure=Kronecker([2] * 3)), batch())
    assert {finding.severity for finding in diagnosis.findings} == {"fine"}
    assert "Nothing was found that limits it" in " ".join(str(diagnosis).split())
    assert "unitary up to" in said(diagnosis, "fine")


def scaled(rnn: RNN, factor: float) -> RNN:
    with torch.no_grad():
        bias = rnn.layer(0).cell.bias
        assert bias is not None
        bias.fill_(0.01)
        for parameter in rnn.layer(0).recurrent.parameters():
            parameter.mul_(factor)
    return rnn


def silent(rnn: RNN) -> RNN:
    bias = rnn.layer(0).cell.bias
    assert isinstance(bias, Tensor)
    with torch.no_grad():
        bias.fill_(-100)
    return rnn


@pytest.mark.parametrize(
    ("build", "severity", "told"),
    [
        (lambda: scaled(RNN(2, 6, nonlinearity="identity", structure=FullUnitary()), 1.0), "fine", "unitary up to"),
        (lambda: scaled(RNN(2, 6, nonlinearity="identity"), 4.0), "problem", "gradients grow tenfold every"),
        (lambda: scaled(RNN(2, 6, nonlinearity="identity"), 90.0), "problem", "states do not stay finite"),
        (lambda: scaled(RNN(2, 6), 0.2), "problem", "prop. 1.1: norms multiply"),
        (lambda: silent(RNN(2, 6, nonlinearity="relu")), "problem", "100 % of the relu units were never on"),
        (lambda: GRU(2, 6, update_bias=6.0), "hint", "update gates are above 0.9 100 % of the time"),
        (lambda: LSTM(2, 6, forget_bias=-6.0), "problem", "forget gates are closed (below 0.1) 100 % of the time"),
        (lambda: GRU(2, 256), "hint", "are dense recurrent matrices"),
    ],
)
def test_what_limits_a_net_is_found(build: Callable[[], nn.Module], severity: str, told: str) -> None:
    assert told in said(diagnose(build(), batch(40, 2)), severity)


def test_long_sequences_tell_of_dependence_and_short_ones_say_why_not() -> None:
    (long,) = diagnose(contracting_gru(), batch(400, 1)).layers
    assert long.convergence is not None
    assert long.convergence.verdict == "short"
    assert long.autocorrelation is not None
    diagnosis = diagnose(contracting_gru(), batch(3, 1))
    (short,) = diagnosis.layers
    assert short.left_out == {
        "dependence": "it needs a sequence of at least 342 steps, got 3",
        "memory range": "it needs sequences of at least 16 steps, got 3",
        "capacity": "it needs sequences of at least 4 steps, got 3",
    }
    assert "left out    capacity: it needs" in str(diagnosis)


def test_states_that_rest_have_no_dependence_to_measure() -> None:
    x = torch.zeros(500, 1, 2)
    x[130] = 1.0
    (layer,) = diagnose(contracting_gru(), x).layers
    assert (
        layer.left_out["dependence"] == "it needs states that vary all the time, got ones that rest more often than not"
    )
    assert layer.reach is not None


def test_ragged_batches_are_measured_on_sequences_that_are_long_enough() -> None:
    lengths = torch.tensor([STEPS, 3, 30])
    (layer,) = diagnose(GRU(2, 4), batch(STEPS, 3), lengths=lengths).layers
    assert (layer.steps, layer.sequences) == (STEPS, 2)
    assert layer.memory_range is not None


def test_without_data_the_matrices_are_looked_at() -> None:
    diagnosis = diagnose(nn.GRU(2, 4))
    (layer,) = diagnosis.layers
    assert len(layer.spectra) == 3
    assert set(layer.left_out.values()) == {"it needs data: diagnose(model, batch)"}


def test_a_layer_that_is_called_step_by_step_has_no_sequence() -> None:
    (layer,) = diagnose(StepByStep(), batch(5)).layers
    assert layer.reach is None
    assert layer.left_out["reach"].endswith("with a whole sequence, got 5")


def test_one_layer_without_a_sequence_leaves_the_others_theirs() -> None:
    model = nn.ModuleDict({"read": nn.GRU(2, 3), "unused": nn.GRU(2, 3)})
    model.forward = lambda x: model["read"](x)
    read, unused = diagnose(model, batch(20)).layers
    assert read.reach is not None
    assert unused.left_out["reach"].endswith("got 0")


def test_changes_neither_the_model_nor_random_numbers() -> None:
    model = Net(GRU(2, 4, num_layers=2, dropout=0.5)).train()
    before, generator = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    first = str(diagnose(model, batch(20)))
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert str(diagnose(model, batch(20))) == first


def test_thorough_is_exact_where_quick_is_an_estimate() -> None:
    model = GRU(2, 40)
    (quick,), (thorough,) = (diagnose(model, batch(20, 2), thorough=deep).layers for deep in (False, True))
    assert quick.reach is not None
    assert thorough.reach is not None
    assert quick.reach.probes == 8
    assert thorough.reach.probes is None
    assert abs(quick.reach.per_step() / thorough.reach.per_step() - 1) < 0.1


class Counting(Net):
    """Notes on how many threads it runs; may break."""

    breaks = False
    threads = 0

    def forward(self, x: Tensor) -> Tensor:
        self.threads = torch.get_num_threads()
        if self.breaks:
            raise RuntimeError("it breaks")
        return super().forward(x)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_runs_on_one_thread_and_leaves_the_number_of_threads_alone() -> None:
    model = Counting(GRU(2, 3))
    diagnose(model, batch(20))
    assert (model.threads, torch.get_num_threads()) == (1, 2)
    model.breaks = True
    with pytest.raises(RuntimeError, match="it breaks"):
        diagnose(model, batch(20))
    assert torch.get_num_threads() == 2


def test_numpy_uses_one_thread_meanwhile_and_then_as_many_as_before() -> None:
    for count, use in _openblas():
        before = count()
        use(2)
        with one_thread():
            assert count() == 1
        assert count() == 2
        use(before)


def test_a_net_that_was_hardly_trained_is_told_so_and_not_that_it_forgets() -> None:
    new = diagnose(GRU(2, 6), batch(200))
    assert "problem" not in {finding.severity for finding in new.findings}
    assert "hardly trained: its biases are exactly those of a new layer" in said(new, "hint")
    few = diagnose(contracting_gru(), batch(200), updates=12)
    assert "problem" not in {finding.severity for finding in few.findings}
    assert "hardly trained: it has had 12 updates. As it begins, " in said(few, "hint")
    assert "gradients fall" in said(diagnose(contracting_gru(), batch(200), updates=1000), "problem")
    assert "gradients fall" in said(diagnose(nn.GRU(2, 6), batch(200)), "problem")


def test_one_update_is_seen_in_the_biases() -> None:
    for rnn in (RNN(2, 5), GRU(2, 5, update_bias=(0, 3)), LSTM(2, 5, forget_bias=1.0)):
        (layer,) = diagnose(rnn).layers
        assert layer.biases_are_new
        optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
        rnn(batch())[0].square().sum().backward()
        optimizer.step()
        (layer,) = diagnose(rnn).layers
        assert not layer.biases_are_new


def test_a_layer_that_forgets_and_states_that_correlate_are_one_sentence() -> None:
    """The input is a random walk, so the states have long correlations whatever the layer does."""
    steps = torch.randn(600, 2, 2, generator=torch.Generator().manual_seed(0))
    diagnosis = diagnose(contracting_gru(), steps.cumsum(0) / 25)
    (layer,) = diagnosis.layers
    assert layer.memory_range is not None
    assert layer.memory_range.short_range
    assert layer.convergence is not None
    assert layer.convergence.verdict == "long"
    (told,) = [str(finding) for finding in diagnosis.findings if "correlations of its states" in finding.seen]
    assert "the layer forgets exponentially" in told
    assert "so here they come from what it reads" in told
    assert "short-range by measurement" not in str(diagnosis)


def test_says_how_many_sequences_were_read_and_why() -> None:
    def headline(*sequences: int, thorough: bool = False, lengths: list[int] | None = None) -> str:
        found = diagnose(GRU(2, 3), batch(20, *sequences), thorough=thorough, lengths=lengths)
        return " ".join(str(found).split())

    assert "on 4 sequences of 20 steps" in headline(4)
    assert "on 8 of 40 sequences (to be quick; thorough=True reads 32) of 20 steps" in headline(40)
    assert "on 32 of 40 sequences (the most it reads) of 20 steps" in headline(40, thorough=True)
    assert "on 2 of 3 sequences (the others are too short) of 20 steps" in headline(3, lengths=[20, 3, 18])


def test_bad_models_and_inputs_get_a_clear_message() -> None:
    with pytest.raises(ValueError, match=r"expected a model with an RNN, GRU or LSTM of .+, got Linear"):
        diagnose(nn.Linear(2, 2), batch())
    with pytest.raises(ValueError, match=r"expected finite numbers in what inner.rnn.l0 reads, got NaN"):
        diagnose(Net(nn.GRU(2, 3)), batch() * math.nan)
    model = Net(LSTM(2, 3))
    with torch.no_grad():
        next(model.parameters()).fill_(math.nan)
    with pytest.raises(ValueError, match=r"expected finite weights, got NaN or infinity in inner.rnn.layers.0"):
        diagnose(model, batch())
    assert slimrnn.analysis.diagnose is diagnose


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, LSTM])
def test_no_random_numbers_are_drawn(kind: type[nn.Module]) -> None:
    model, given = kind(2, 3), batch()
    before = torch.get_rng_state()
    diagnose(model, given)
    assert torch.equal(torch.get_rng_state(), before)
