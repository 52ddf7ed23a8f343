"""Forecasts of a user's series: quantiles of the next values.

The net's output is the difference to a naive forecast, the last value or that of a period ago, in units of the
window's deviation; so an output of zero is as good as the naive forecast. Shape suffixes: T time, B windows,
H steps ahead, Q quantiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimrnn._checks import check_choice, check_count
from slimrnn._texts import listed
from slimrnn.data.roles import Roles
from slimrnn.data.sequences import Sequences
from slimrnn.errors import DataError
from slimrnn.tasks.averages import average
from slimrnn.tasks.own.defaults import forecast_config
from slimrnn.tasks.own.forecast_scores import quantile_scores
from slimrnn.tasks.own.naive_forecasts import naive_scores
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.tasks.own.scaling import Scaling
from slimrnn.tasks.own.series import Series
from slimrnn.tasks.own.splits import SPLITS
from slimrnn.tasks.own.windows import Windows, cuts, origins, windows
from slimrnn.training.batches import as_dtype
from slimrnn.training.config import Config
from slimrnn.training.task import Batch, Indices, Samples, Score

LEAST = 32  # steps that a forecast reads, unless the series are shorter


@dataclass(frozen=True)
class ForecastTask(OwnTask):
    """Forecast your own series, with intervals."""

    column: tuple[str, ...] = ()
    """columns to forecast, each as a series; default: all that are read"""
    horizon: int = 12
    """number of steps ahead"""
    period: tuple[int, ...] = ()
    """lengths of seasons in steps, such as 24 168 for hours: naive forecasts and inputs"""
    context: int | None = None
    """steps that a forecast reads; default: two of the longest period or horizon, at least 32"""
    quantiles: tuple[float, ...] = (0.1, 0.5, 0.9)
    """levels to forecast; 0.5 is the forecast itself, the outer ones are its interval"""

    name = "forecast"
    every_step = True
    labels_are = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("horizon", self.horizon)
        for period in self.period:
            check_count("period", period)
        if self.context is not None:
            check_count("context", self.context)
        levels = self.quantiles
        if sorted(set(levels)) != list(levels) or 0.5 not in levels or not 0 < min(levels) <= max(levels) < 1:
            given = listed(map(str, levels)) or "none"
            raise ValueError(f"expected increasing quantiles between 0 and 1, 0.5 among them, got {given}")

    # --- data -------------------------------------------------------------------------------------------

    @property
    def wanted_roles(self) -> Roles:
        """The columns to forecast are read, and others only where they are named."""
        read = tuple(dict.fromkeys([*self.column, *self.columns]))
        return replace(super().wanted_roles, columns=read or None)

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Columns to forecast."""
        for name in self.column:
            if name not in self.sequences.columns:
                raise DataError(f"expected a column {name} to forecast, got {listed(self.sequences.columns)}")
        return self.column or self.sequences.columns

    @property
    def input_columns(self) -> tuple[str, ...]:
        others = () if self.scaling is None else self.scaling.columns
        return (*self.targets, *others)

    @cached_property
    def scaling(self) -> Scaling | None:
        """Of the other columns, from the part of the series before validation and test."""
        others = [name for name in self.sequences.columns if name not in self.targets]
        if not others:
            return None
        read, ends = self.sequences, self.sequences.starts[:-1] + self.cuts["valid"][:: len(self.targets)]
        steps = np.concatenate([np.arange(*pair) for pair in zip(read.starts, ends, strict=False)])
        chosen = read.values[steps][:, [read.columns.index(name) for name in others]]
        table = Sequences(chosen, np.array([0, len(steps)]), tuple(others), ("training",))
        return Scaling.learned(table, np.arange(1))

    @cached_property
    def series(self) -> Series:
        """Of the file."""
        return self.series_of(self.sequences)

    def series_of(self, sequences: Sequences) -> Series:
        return Series(sequences, self.targets, self.horizon, self.period, self.scaling)

    @cached_property
    def cuts(self) -> dict[str, Indices]:
        """Where the parts of each series begin."""
        lengths = np.repeat(self.sequences.lengths, len(self.targets))
        found = cuts(lengths, self.test_share, self.valid_share, self.horizon)
        least = 2 + self.horizon
        if (short := np.flatnonzero(found["valid"] < least)).size:
            index = int(short[0])
            raise DataError(
                f"expected series of more steps, {least} to train on beside those for validation and test, got "
                f"{int(lengths[index])} in {self.sequences.ids[index // len(self.targets)]}: try a shorter --horizon"
            )
        return found

    @cached_property
    def reads(self) -> int:
        """Steps before a forecast."""
        wanted = self.context or max(LEAST, 2 * self.horizon, 2 * max(self.period, default=1))
        return min(wanted, max(2, int(self.cuts["valid"].max()) - self.horizon))

    @property
    def span(self) -> int:
        """Origins of a window."""
        return max(8, self.reads // 2)

    def windows(self, split: str) -> Windows:
        """Of a part."""
        check_choice("split", split, SPLITS)
        return windows(*self._origins(split), self.reads, self.span, overlap=split == "train")

    @cached_property
    def all_windows(self) -> dict[str, Windows]:
        return {split: self.windows(split) for split in SPLITS}

    @cached_property
    def units(self) -> NDArray[np.float64]:
        return self.series.units(self.cuts["valid"])

    @cached_property
    def base(self) -> int:
        """The period whose naive forecasts are best in the training part; 1: the last value."""
        errors = {period: self._naive("train", period)["mase"] for period in (1, *self.period)}
        return min(errors, key=lambda period: errors[period])

    def facts(self) -> dict[str, Any]:
        others = {} if self.scaling is None else {"others": self.scaling.record()}
        return super().facts() | {"targets": list(self.targets), "context": self.reads, "base": self.base, **others}

    def remember(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        others = facts.get("others")
        return super().remember(facts) | {
            "targets": tuple(map(str, facts["targets"])),
            "reads": int(facts["context"]),
            "base": int(facts["base"]),
            "scaling": None if others is None else Scaling.from_record(others),
        }

    @property
    def input_size(self) -> int:
        others = 0 if self.scaling is None else len(self.scaling.columns)
        return 2 + sum(2 + min(self.horizon, period) for period in self.period) + others

    @property
    def output_size(self) -> int:
        return self.horizon * len(self.quantiles)

    def samples(self, split: str, seed: int) -> Samples:
        return _WindowSamples(self, split, len(self.windows(split)))

    def window_batch(self, series: Series, chosen: Windows, units: NDArray[np.float64]) -> Batch:
        """Targets are, side by side: what is to be added to the naive forecasts (H), these (H), both in units of the
        window; its level, its scale and the series' unit of MASE."""
        inputs, level_B, scale_B = series.inputs(chosen)
        truth, guess = series.ahead(chosen, self.base)
        level, scale = level_B[:, None], scale_B[:, None]
        sides = np.stack([level_B, scale_B, units], -1)
        targets = np.concatenate(
            [(truth - guess) / scale, (guess - level) / scale, np.broadcast_to(sides, (*truth.shape[:2], 3))], -1
        )
        steps_T1 = np.arange(len(inputs))[:, None]
        scored = (steps_T1 >= chosen.read) & (steps_T1 < chosen.steps)
        return Batch(
            torch.from_numpy(inputs),
            torch.from_numpy(targets.astype(np.float32)),
            torch.from_numpy(scored.astype(np.float32)),
            torch.from_numpy(chosen.steps),
        )

    # --- scores -----------------------------------------------------------------------------------------

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The pinball loss in units of the windows; errors of the median in the data's units; the share of values
        inside the interval."""
        ahead = self.horizon
        weights = None if batch.weights is None else batch.weights.to(output.dtype).unsqueeze(-1)
        known = batch.targets[..., :ahead].isfinite().to(output.dtype)
        weights = known if weights is None else known * weights
        outputs = output.unflatten(-1, (ahead, len(self.quantiles)))
        values = quantile_scores(outputs, batch.targets, self.quantiles)
        return {name: average(value, weights) for name, value in values.items()}

    def rivals(self, split: str) -> dict[str, dict[str, float]]:
        """The last value, and the value one period ago."""
        names = {1: "last value"} | {period: f"seasonal naive, {period} steps" for period in self.period}
        return {name: self._naive(split, period) for period, name in names.items()}

    def _naive(self, split: str, period: int) -> dict[str, float]:
        return naive_scores(self.series, *self._origins(split), self.units, period)

    def _origins(self, split: str) -> tuple[Indices, Indices]:
        """First and last one of each series in a part."""
        least = max(2, min(self.reads, int(self.cuts["valid"].min()) // 2))
        return origins(self.cuts, split, self.horizon, least)

    def suited_config(self) -> tuple[Config, str]:
        return forecast_config(self)

    def check(self, config: Config) -> None:
        super().check(config)
        if config.model.bidirectional:
            raise ValueError("expected one direction, got a bidirectional net, which sees the values to forecast")

    # --- predictions ------------------------------------------------------------------------------------

    @property
    def answer_columns(self) -> list[str]:
        which = ["column"] if len(self.targets) > 1 else []
        return [*which, self.roles.time or "step", *(f"q{level:g}" for level in self.quantiles)]

    def answers(self, model: nn.Module, sequences: Sequences, which: Indices) -> Iterator[tuple[int, list[list[str]]]]:
        """Quantiles of the steps after the last one."""
        series, names = self.series_of(sequences), self.targets
        for index in which.tolist():
            numbers = index * len(names) + np.arange(len(names))
            rows: list[list[str]] = []
            times = series.clock(index).later(self.horizon)
            found = self.forecasts(model, series, numbers, series.lengths[numbers] - 1)
            for name, forecast in zip(names, found, strict=True):
                column = [name] if len(names) > 1 else []
                rows += [[*column, time, *(f"{q:.7g}" for q in row)] for time, row in zip(times, forecast, strict=True)]
            yield index, rows

    @torch.no_grad()
    def forecasts(self, model: nn.Module, series: Series, numbers: Indices, at: Indices) -> NDArray[np.float64]:
        """Of these series from these origins: (B, H, Q)."""
        some = next(model.parameters())
        first = np.maximum(0, at - self.reads + 1)
        chosen = Windows(numbers, first, at - first + 1, at - first)
        batch = as_dtype(self.window_batch(series, chosen, np.ones(len(numbers))), some.dtype).to(some.device)
        output, _ = model.eval()(batch.inputs, None, batch.lengths)
        last = batch.lengths - 1, torch.arange(len(numbers))  # type: ignore[operator]
        answer = output[last].unflatten(-1, (self.horizon, -1)).sort(-1).values.double()
        targets = batch.targets[last].double()
        base = targets[:, self.horizon : 2 * self.horizon, None]
        level, scale = (targets[:, 2 * self.horizon + k, None, None] for k in range(2))
        values: NDArray[np.float64] = ((answer + base) * scale + level).cpu().numpy()
        return values

    def illustrate(self, model: nn.Module, directory: Path) -> None:
        """forecast.png: forecasts of the test part, one after the other, with intervals."""
        from slimrnn.tasks.own.forecast_figure import plot_forecasts

        plot_forecasts(self, model, directory / "forecast.png")


@dataclass(frozen=True)
class _WindowSamples:
    """Window i of a part."""

    task: ForecastTask
    split: str
    size: int

    def lengths(self, indices: Indices) -> Indices:
        return self.task.all_windows[self.split].steps[indices]

    def fetch(self, indices: Indices) -> Batch:
        task, found = self.task, self.task.all_windows[self.split]
        chosen = Windows(*(part[indices] for part in (found.series, found.first, found.steps, found.read)))
        return task.window_batch(task.series, chosen, task.units[chosen.series])
