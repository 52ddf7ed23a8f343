"""compress: budgets, data, what it refuses, what it reports."""

from __future__ import annotations

import copy
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import CLASSES, Tagger, batches, cross_entropy, tagger
from torch import nn

import slimrnn
from slimrnn import GRU, LSTM, Dense, LowRank, compress
from slimrnn.compression.budget import Budget, read_budget
from slimrnn.compression.choosing import choose_by_score
from slimrnn.compression.fine_tuning import fine_tune_
from slimrnn.compression.losses import probe
from slimrnn.compression.plan import Plan, cost_of
from slimrnn.layers import RecurrentStack


def weighted_plan(model: nn.Module, **options: Any) -> Plan:
    return Plan.of(slimrnn.replace(copy.deepcopy(model)), **options).measured(
        batches(), probe("logits", torch.Generator().manual_seed(0))
    )


PLAN = weighted_plan(tagger(num_layers=2, bidirectional=True))


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(0.15, 1.0), min_size=2, max_size=4))
def test_the_budget_is_kept_and_the_error_falls_as_it_grows(shares: list[float]) -> None:
    errors = []
    for share in sorted(shares):
        chosen = PLAN.choose(Budget(share, is_share=True))
        assert cost_of(PLAN.build(chosen), "parameters") <= share * PLAN.whole("parameters")
        errors.append(sum(candidate.error for candidate in chosen))
    assert all(more >= less - 1e-12 for more, less in itertools.pairwise(errors))


@pytest.mark.parametrize("budget", ["40%", 400, "3 kB", "0.3k macs"])
def test_budgets_of_all_units_are_kept(budget: str | int) -> None:
    wanted = read_budget(budget)
    small = compress(tagger(), budget).model
    room = wanted.of(cost_of(slimrnn.replace(tagger()), wanted.unit))
    assert 0.8 * room < cost_of(small, wanted.unit) <= room


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU])
def test_the_full_budget_gives_the_same_function(kind: type[nn.RNNBase]) -> None:
    model, x = tagger(kind), batches()[0][0]
    small = compress(model, 1.0, data=batches(), loss=cross_entropy).model
    torch.testing.assert_close(small(x), model(x), rtol=1e-10, atol=1e-10)


def test_the_model_itself_is_not_changed() -> None:
    model = tagger()
    before = copy.deepcopy(model.state_dict())
    compress(model, 0.3, data=batches(), loss="logits", fine_tune=2)
    assert isinstance(model.rnn, nn.LSTM)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("loss", [None, "logits", cross_entropy])
def test_weights_from_data_bring_outputs_nearer(loss: Any) -> None:
    model, data = tagger(), batches()
    plain, weighted = compress(model, 0.3).model, compress(model, 0.3, data=data, loss=loss).model
    wanted = model(data[0][0])
    assert (weighted(data[0][0]) - wanted).norm() < 0.7 * (plain(data[0][0]) - wanted).norm()


@pytest.mark.parametrize("reset", ["before", "after"])
def test_any_cell_is_weighted(reset: str) -> None:
    torch.manual_seed(0)
    model = Tagger(GRU(4, 12, reset=reset, bidirectional=True, dtype=torch.float64), 24)
    chosen = weighted_plan(model).choose(Budget(0.3, is_share=True))
    assert sum(candidate.error for candidate in chosen) > 0


def test_tokens_and_ragged_batches_are_weighted() -> None:
    torch.manual_seed(0)
    rnn = LSTM(CLASSES, 12, one_hot=True, dtype=torch.float64)
    tokens, lengths = torch.randint(CLASSES, (9, 3)), [9, 5, 2]

    def loss(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = model(batch, lengths=lengths)[0]
        return output.square().sum()

    small = compress(rnn, 0.4, data=[tokens], loss=loss)
    assert small.report.matrices[1].weighted_error < 1
    assert isinstance(small.model, LSTM)


def test_layers_that_are_kept_stay_as_they_are() -> None:
    small = compress(tagger(num_layers=2), 0.8, keep=["rnn.l0", "*.l1.input"])
    assert [one.name for one in small.report.matrices] == ["rnn.l1.recurrent"]
    rnn = small.model.rnn
    assert isinstance(rnn, RecurrentStack)
    assert rnn.input_structure == Dense()
    assert "kept as asked" in str(small.report)


def test_structures_can_be_chosen() -> None:
    small = compress(tagger(), 0.5, structures=["block-diagonal", LowRank(2, tied=True)])
    names = {one.structure for one in small.report.matrices}
    assert names <= {"LowRank(2, tied=True)", "Dense()", *(f"BlockDiagonal({b})" for b in (2, 3, 4, 6, 12))}


def test_what_is_slower_than_dense_is_chosen_only_if_asked_for() -> None:
    slow = ("kronecker+sparse", "dense")
    asked = Plan.of(LSTM(12, 12), slow)
    assert any(len(matrix.candidates) > 1 for matrix in asked.matrices)
    from slimrnn.compression.candidates import matrices_of
    from slimrnn.compression.sites import find_sites

    unasked = matrices_of(find_sites(LSTM(12, 12)).sites, slow, asked=False)
    assert all(len(matrix.candidates) == 1 for matrix in unasked)


def test_the_smallest_for_a_target_is_within_it_and_small() -> None:
    model, data = tagger(), batches()
    report = compress(model, target=0.02, data=data, loss=cross_entropy).report
    assert report.before.score is not None
    assert report.after.score is not None
    assert report.after.score <= 1.02 * report.before.score
    assert report.after.parameters < 0.7 * report.before.parameters


@pytest.mark.parametrize("loss", [None, "logits", cross_entropy])
def test_fine_tuning_keeps_the_best_net(loss: Any) -> None:
    report = compress(tagger(), 0.25, data=batches(), loss=loss, fine_tune=10).report
    assert report.updates == 10
    assert report.right_after is not None
    assert report.after.score is not None
    assert report.after.score <= report.right_after


def test_an_interrupt_keeps_the_best_net_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    calls = []

    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        calls.append(model.training)
        if model.training and sum(calls) == 4:
            raise KeyboardInterrupt
        return cross_entropy(model, batch)

    report = compress(tagger(), 0.25, data=batches(), loss=loss, fine_tune=30).report
    assert report.updates == 3
    assert "stopped after update 3" in capsys.readouterr().err


def test_a_compressed_model_is_saved_and_loaded(tmp_path: Path) -> None:
    small = compress(nn.LSTM(4, 12, num_layers=2), 0.3).model
    slimrnn.save(small, tmp_path / "small")
    x = torch.randn(5, 2, 4)
    assert torch.equal(slimrnn.load(tmp_path / "small")(x)[0], small(x)[0])


def test_the_report_is_written(tmp_path: Path) -> None:
    report = compress(tagger(), 0.3, data=batches(), loss=cross_entropy).report
    assert report.save(tmp_path / "out") == tmp_path / "out"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "report.txt",
        "report.json",
        "report.html",
        "pareto.png",
    }
    assert (tmp_path / "out/report.txt").read_text() == f"{report}\n"
    assert json.loads((tmp_path / "out/report.json").read_text())["after"]["parameters"] == report.after.parameters
    assert "rnn.l0.recurrent" in (tmp_path / "out/report.html").read_text()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"budget": 0.01}, "expected a budget of at least 160 parameters, 19.6 % of the recurrent layers' 816, got 8"),
    ({"budget": "a lot"}, "as budget, got 'a lot'"),
    ({"budget": -1}, "expected a positive budget, got -1"),
    ({"budget": "300%"}, "expected a share of at most 100%"),
    ({"budget": "22,5 KB"}, "as budget, got '22,5 KB'"),
    ({}, "expected a budget or a target, got neither"),
    ({"budget": 0.5, "target": 0.1}, "expected a budget or a target, got both"),
    ({"budget": 0.5, "fine_tune": 3}, "expected data with fine_tune, got none"),
    ({"target": 0.0}, "expected data with target, got none"),
    ({"budget": 0.5, "loss": "logits"}, "expected data with loss, got none"),
    ({"budget": 0.5, "data": []}, "expected at least one batch of data, got none"),
    ({"budget": 0.5, "data": [torch.zeros(3, 2, 5)]}, "expected data that the model takes"),
    ({"budget": 0.5, "keep": "decoder.*"}, "expected keep to match some of rnn.l0.input, rnn.l0.recurrent"),
    ({"budget": 0.5, "structures": ["lowrank"]}, "did you mean 'low-rank'"),
    ({"budget": 0.5, "data": batches(), "loss": lambda model, batch: model(batch[0])}, "to return one number"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_input_is_refused(options: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*_: Any) -> None:
        raise AssertionError("expected to be refused before any work")

    monkeypatch.setattr(Plan, "measured", work)
    with pytest.raises(ValueError, match=said.replace("(", r"\(").replace(")", r"\)")):
        compress(tagger(), **options)


def test_a_model_without_recurrent_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a model with recurrent matrices to compress, got one without"):
        compress(nn.Linear(3, 3), 0.5)


def test_a_net_whose_score_is_no_number_is_not_chosen() -> None:
    scores = iter([math.nan, 0.5, math.nan, 0.3, *[math.nan] * 9])
    given: list[nn.Module] = []

    def score(model: nn.Module) -> float:
        given.append(model)
        return next(scores)

    assert choose_by_score(PLAN, Budget(0.4, is_share=True), score).model is given[3]


def test_fine_tuning_leaves_a_net_whose_score_is_no_number() -> None:
    scores, model = iter([math.nan, 2.0, 1.0]), tagger()
    tuned = fine_tune_(model, tagger(), batches(), None, 2, lambda _: next(scores), 1e-3, quiet=True)
    assert (tuned.best_update, tuned.score) == (2, 1.0)
    with pytest.raises(ValueError, match="expected parameters to fine-tune, got none with requires_grad"):
        fine_tune_(model.requires_grad_(False), tagger(), batches(), None, 2, lambda _: 1.0, 1e-3)


def test_a_matrix_of_zeros_is_approximated_without_error() -> None:
    model = nn.LSTM(3, 16)
    model.get_parameter("weight_hh_l0").data.zero_()
    (of_inputs, recurrent) = compress(model, 0.3).report.matrices
    assert (recurrent.weighted_error, recurrent.plain_error, of_inputs.weighted_error) == (0, 0, 0)


@pytest.mark.parametrize(("text", "amount"), [("1,234 params", 1234), ("1,234,567", 1234567), ("50_000", 50000)])
def test_commas_divide_thousands(text: str, amount: int) -> None:
    assert read_budget(text) == Budget(amount)
