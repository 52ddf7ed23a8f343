"""Forecasts: nothing of the future is read, and naive forecasts are what they should be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from own_cases import some_sequences, some_series, tiny
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.tasks.own import ForecastTask
from slimrnn.tasks.own.calendar import Clock, waves
from slimrnn.tasks.own.forecast_scores import pinball, quantile_scores
from slimrnn.tasks.own.naive_forecasts import naive, naive_error
from slimrnn.tasks.own.windows import Windows


def of_series(**options: object) -> ForecastTask:
    return ForecastTask.of(some_series(), **{"horizon": 3, "period": (6,), "context": 12} | options)


def test_parts_follow_each_other_in_time() -> None:
    task = of_series()
    assert {name: cut.tolist() for name, cut in task.cuts.items()} == {
        "train": [0, 0],
        "valid": [38, 38],
        "test": [48, 48],
        "end": [60, 60],
    }


@pytest.mark.parametrize("split", ["valid", "test"])
def test_every_origin_of_a_part_is_scored_once(split: str) -> None:
    task = of_series()
    found = task.windows(split)
    scored = [
        (series, first + step)
        for series, first, steps, read in zip(found.series, found.first, found.steps, found.read, strict=True)
        for step in range(read, steps)
    ]
    begin = int(task.cuts[split][0]) - 1
    end = int(task.cuts[{"valid": "test", "test": "end"}[split]][0]) - task.horizon - 1
    assert sorted(scored) == [(series, origin) for series in range(2) for origin in range(begin, end + 1)]


def test_training_reads_and_scores_nothing_of_the_later_parts() -> None:
    task = of_series()
    values = some_series().values.copy()
    for start in (0, 60):
        values[start + 38 : start + 60] = 1e6
    other = ForecastTask.of(replace(some_series(), values=values), horizon=3, period=(6,), context=12)
    samples, others = task.samples("train", 0), other.samples("train", 0)
    assert samples.size == others.size
    assert samples.size is not None
    a, b = (one.fetch(np.arange(samples.size)) for one in (samples, others))
    assert a.weights is not None
    scored = a.weights > 0
    assert torch.equal(a.inputs, b.inputs)
    assert torch.equal(a.targets[scored], b.targets[scored])
    assert task.facts() == other.facts()


def test_inputs_at_a_step_do_not_know_later_values() -> None:
    task = of_series()
    window = Windows(*(np.array([n]) for n in (0, 5, 20, 11)))
    values = some_series().values.copy()
    values[20:60] += 100  # the window goes on to step 24, its first origin is step 16
    later = ForecastTask.of(replace(some_series(), values=values), horizon=3, period=(6,), context=12)
    a, b = (one.series.inputs(window)[0] for one in (task, later))
    assert (a[:15] == b[:15]).all()
    assert (a[15:] != b[15:]).any()


def test_naive_forecasts_repeat_the_last_period() -> None:
    values = np.arange(10.0)
    assert naive(values, np.array([9]), 5, 3).tolist() == [[7, 8, 9, 7, 8]]
    assert naive(values, np.array([9]), 3, 1).tolist() == [[9, 9, 9]]
    assert np.isnan(naive(values, np.array([1]), 1, 6)).all()


def test_naive_error_is_the_mean_change_over_a_period() -> None:
    assert naive_error(np.array([0.0, 10, 1, 12]), 2) == 1.5
    assert naive_error(np.array([0.0, 10]), 5) == 10  # too short for the period


def test_an_output_of_zero_is_the_naive_forecast() -> None:
    task = of_series()
    samples = task.samples("test", 0)
    batch = samples.fetch(np.arange(samples.size or 0))
    output = torch.zeros(*batch.inputs.shape[:2], task.output_size)
    scores = {name: float(score.total) / float(score.weight) for name, score in task.scores(output, batch).items()}
    rival = task.rivals("test")["seasonal naive, 6 steps" if task.base == 6 else "last value"]
    assert task.base == 6
    for name, value in rival.items():
        assert scores[name] == pytest.approx(value, rel=1e-4)


def test_pinball_loss_is_least_at_the_quantile() -> None:
    values = torch.arange(101.0)
    losses = [float(pinball(torch.full((101, 1), float(guess)), values, [0.9]).sum()) for guess in range(101)]
    assert int(np.argmin(losses)) == 90


def test_coverage_and_errors_of_a_known_case() -> None:
    outputs = torch.tensor([[[-1.0, 0.0, 1.0], [2.0, 0.0, 1.0]]])  # the second crosses: it is sorted
    targets = torch.tensor([[0.5, 3.0, 0.0, 0.0, 10.0, 2.0, 4.0]])  # residuals, base, level, scale, unit
    scores = quantile_scores(outputs, targets, (0.1, 0.5, 0.9))
    assert scores["coverage"].tolist() == [[1, 0]]
    assert scores["mae"].tolist() == [[1.0, 4.0]]
    assert scores["mase"].tolist() == [[0.25, 1.0]]
    assert scores["smape"].tolist() == [pytest.approx([2 / 21, 8 / 28])]


def test_missing_values_are_read_as_the_last_and_not_scored() -> None:
    values = some_series().values.copy()
    values[[3, 55]] = np.nan
    task = ForecastTask.of(replace(some_series(), values=values), horizon=3, period=(6,), context=12)
    assert task.series.one(0)[3] == task.series.one(0)[2]
    batch = task.samples("test", 0).fetch(np.arange(1))
    assert batch.inputs.isfinite().all()
    assert batch.targets[..., :3].isnan().any()
    output = torch.zeros(*batch.inputs.shape[:2], task.output_size)
    assert all(torch.isfinite(score.total) for score in task.scores(output, batch).values())


def test_other_columns_are_inputs_scaled_by_the_training_part() -> None:
    series = some_series()
    both = Sequences(np.hstack([series.values, 5 + 3 * series.values]), series.starts, ("load", "heat"), series.ids)
    task = ForecastTask.of(both, column=("load",), horizon=2)
    assert task.targets == ("load",)
    assert task.scaling is not None
    assert task.scaling.columns == ("heat",)
    known = np.concatenate([both.values[start : start + 38, 1] for start in (0, 60)])
    assert task.scaling.mean[0] == pytest.approx(known.mean(), rel=1e-5)
    assert ForecastTask.of(both, horizon=2).targets == ("load", "heat")


def test_a_net_that_sees_the_future_is_refused() -> None:
    task = of_series()
    config = task.default_config()
    with pytest.raises(ValueError, match="expected one direction"):
        task.check(replace(config, model=replace(config.model, bidirectional=True)))


def test_short_series_are_refused() -> None:
    with pytest.raises(DataError, match=r"expected series of more steps, 5 to train on .* got 9 in s0"):
        ForecastTask.of(some_sequences(kind="forecast"), horizon=3).samples("train", 0)


@pytest.mark.parametrize("levels", [(0.1, 0.9), (0.9, 0.5), (0.0, 0.5), ()])
def test_quantiles_need_a_median(levels: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected increasing quantiles between 0 and 1, 0\.5 among them"):
        ForecastTask(quantiles=levels)


def test_months_are_counted_as_months() -> None:
    months = np.arange("2020-01", "2023-01", dtype="datetime64[M]").astype("datetime64[us]")
    clock = Clock(months, 36)
    assert (np.diff(clock.numbers()) == 1).all()
    assert clock.later(2) == ["2023-01", "2023-02"]
    assert np.abs(waves(clock.numbers(), (12,))[:12].sum(0)).max() < 1e-6


@pytest.mark.parametrize("days", [28, 30, 31])
@pytest.mark.parametrize("count", [3, 4, 30])
def test_a_number_of_days_is_no_month(days: int, count: int) -> None:
    times = np.datetime64("2024-01-22", "us") - np.timedelta64(days, "D") * np.arange(count)[::-1]
    clock = Clock(times, count)
    assert clock.later(2) == [str(np.datetime64("2024-01-22T00:00:00") + days * (k + 1) * 86_400) for k in range(2)]
    assert (np.diff(clock.numbers()) == 1).all()


@pytest.mark.parametrize("day", [0, 14, 27])
def test_any_day_of_a_month_is_one_of_it(day: int) -> None:
    months = np.array(["2023-07", "2023-08", "2023-09", "2023-11"], dtype="datetime64[M]").astype("datetime64[us]")
    clock = Clock(months + np.timedelta64(day, "D"), 4)
    assert np.diff(clock.numbers()).tolist() == [1, 1, 2]
    assert clock.later(2) == ["2023-12", "2024-01"]
    ends = Clock(np.array(["2023-07-31", "2023-08-31", "2023-09-30"], dtype="datetime64[us]"), 3)
    assert ends.later(1) == ["2023-10"]
    years = Clock(np.array(["2019-12-31", "2020-12-31", "2021-12-31"], dtype="datetime64[us]"), 3)
    assert years.later(1) == ["2022"]


def test_hours_go_on_by_their_step() -> None:
    hours = np.datetime64("2026-01-31T22:00:00", "us") + np.arange(3) * np.timedelta64(30, "m")
    assert Clock(hours, 3).later(3) == ["2026-01-31T23:30:00", "2026-02-01T00:00:00", "2026-02-01T00:30:00"]
    assert Clock(np.array([0.5, 1.0]), 2).later(2) == ["1.5", "2"]
    assert Clock(None, 4).later(2) == ["4", "5"]


def test_the_phase_of_a_period_comes_from_the_times() -> None:
    whole, part = (Clock(np.arange(start, 30.0), 30 - start).numbers() for start in (0, 11))
    assert (whole[11:] == part).all()


def test_a_net_learns_the_wave() -> None:
    task = of_series()
    config = tiny(task)
    net = task.model(config.model)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    batch = task.samples("train", 0).fetch(np.arange(30))
    losses = []
    for _ in range(40):
        loss = task.run(net, batch)[0].scores["loss"]
        optimizer.zero_grad()
        (loss.total / loss.weight).backward()
        optimizer.step()
        losses.append((loss.total / loss.weight).item())
    assert losses[-1] < 0.6 * losses[0]
