"""Forecast a series of your own: torch's LSTM, and slimrnn's with a structured matrix in its place.

    python examples/forecasting.py --file my.csv --column value --periods 24 168

The file has a header and a row for every time step, in order and equally far apart. A net reads the values, and its
place in each period; at every step it forecasts the next ones all at once. The last fifth of the series judges it,
beside forecasts that need no net: the last value, and what was there a period before. Without a file the series is
made: hours with a daily and a weekly rhythm, and noise with a long memory.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import torch
import tyro
from matplotlib.figure import Figure
from torch import Tensor, nn

import slimrnn
from slimrnn.analysis import arfima
from slimrnn.plotting import COLORS, PALE, label_ends, save, styled

HIDDEN, WINDOW, BATCH = 128, 336, 16


def make_layers(features: int) -> dict[str, nn.Module]:
    """The only difference: slimrnn's takes a structure of its recurrent matrices."""
    structure = slimrnn.LowRank(8) + slimrnn.Diagonal()
    return {
        "torch.nn.LSTM": nn.LSTM(features, HIDDEN, batch_first=True),
        "slimrnn.LSTM": slimrnn.LSTM(features, HIDDEN, batch_first=True, structure=structure),
    }


class Forecaster(nn.Module):
    """(B, T, features), the value first, to the next values (B, T, horizon), as changes from the present one."""

    def __init__(self, rnn: nn.Module, horizon: int) -> None:
        super().__init__()
        self.rnn, self.readout = rnn, nn.Linear(HIDDEN, horizon)

    def forward(self, x: Tensor) -> Tensor:
        changes: Tensor = self.readout(self.rnn(x)[0])
        return x[..., :1] + changes


def train(net: Forecaster, x: Tensor, targets: Tensor, updates: int) -> None:
    """Random windows of the series; the loss is the mean absolute error of all steps."""
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    for _ in range(updates):
        places = torch.randint(len(targets) - WINDOW + 1, (BATCH, 1)) + torch.arange(WINDOW)
        optimizer.zero_grad()
        (net(x[places]) - targets[places]).abs().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def main(
    file: Path | None = None,
    column: str = "value",
    periods: tuple[int, ...] = (24, 168),
    horizon: int = 24,
    updates: int = 300,
    out: Path = Path("out/forecasting.png"),
) -> None:
    """Train both nets, print all errors and save a picture.

    Args:
        file: a CSV file; by default a series is made
        column: of the file
        periods: steps of the rhythms that the series may have
        horizon: steps to forecast
        updates: of each net
        out: the picture
    """
    torch.manual_seed(0)
    series = made() if file is None else read(file, column)
    cut, last = len(series) * 4 // 5, len(series) - horizon  # forecasts are judged from the one step up to the other
    if min((horizon, *periods)) < 1:
        raise SystemExit(f"expected a horizon and periods of at least one step, got {horizon} and {periods}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.touch()
    except OSError as error:
        raise SystemExit(f"expected a place for the picture, got {out}: {error.strerror}") from None
    if cut < max((WINDOW + horizon, *periods)) or last <= cut + horizon:
        raise SystemExit(f"expected a series that is long beside its periods and the horizon, got {len(series)} steps")
    mean, scale = series[:cut].mean(), series[:cut].std() + 1e-6
    angles = 2 * math.pi * torch.arange(len(series))[:, None] / torch.tensor(periods)
    x = torch.cat([(series[:, None] - mean) / scale, angles.sin(), angles.cos()], 1)
    targets = x[1:, 0].unfold(0, horizon, 1)  # [t]: what comes after step t
    layers = make_layers(x.shape[1])
    forecasts: dict[str, Tensor] = {}
    for name, layer in layers.items():
        net = Forecaster(layer, horizon)
        train(net, x, targets[: cut - horizon], updates)
        with torch.no_grad():
            forecasts[name] = mean + scale * net(x[None])[0, cut:last]
    now, ahead = torch.arange(cut, last)[:, None], torch.arange(1, horizon + 1)
    forecasts |= naive_forecasts(series, now, ahead, periods)
    errors = {name: float((told - series[now + ahead]).abs().mean()) for name, told in forecasts.items()}

    sizes = {name: f", {sum(p.numel() for p in layer.parameters()):,} parameters" for name, layer in layers.items()}
    labels = [f"{error:.3g}{sizes.get(name, '')}" for name, error in errors.items()]
    print(f"mean absolute error of {len(now):,} forecasts of {horizon} steps")
    print("\n".join(f"  {name:17} {label}" for name, label in zip(errors, labels, strict=True)))
    draw(series, [forecasts[name] for name in layers], errors, labels, out)
    print(f"picture: {out}")


def naive_forecasts(series: Tensor, now: Tensor, ahead: Tensor, periods: tuple[int, ...]) -> dict[str, Tensor]:
    """What needs no net; of the periods before, the last one that is known."""
    known = {f"{period} steps before": now + ahead - period * ((ahead - 1) // period + 1) for period in periods}
    return {name: series[place] for name, place in ({"last value": now + 0 * ahead} | known).items()}


def made(weeks: int = 24) -> Tensor:
    """Hours of days that are quieter at weekends, and noise with a long memory."""
    hour = torch.arange(168 * weeks)
    weekend = (hour % 168 >= 120).float()
    rhythm = (1 - 0.6 * weekend) * torch.sin(2 * math.pi * (hour - 8) / 24) - weekend
    return 20 + 5 * rhythm + torch.from_numpy(arfima(0.4, len(hour), seed=0)).float()


def read(file: Path, column: str) -> Tensor:
    """The numbers of a column."""
    try:
        rows = list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeError, csv.Error) as error:
        raise SystemExit(f"expected a CSV file, got {file}: {error}") from None
    if not rows or column not in rows[0]:
        raise SystemExit(f"expected a column {column!r} in {file}, got {list(rows[0]) if rows else 'no rows'}")
    values = []
    for line, row in enumerate(rows, start=2):
        try:
            values.append(float(row[column]))
        except (TypeError, ValueError):
            values.append(math.nan)
        if not math.isfinite(values[-1]):
            raise SystemExit(f"expected a number in line {line} of {file}, got {row[column]!r}")
    return torch.tensor(values)


def draw(series: Tensor, told: list[Tensor], errors: dict[str, float], labels: list[str], path: Path) -> None:
    """What both nets told of the end of the series, forecast after forecast, and the errors of all."""
    figure = Figure(figsize=(8.6, 7), dpi=150)
    top, bottom = figure.subplots(2, 1, height_ratios=[3, 2], gridspec_kw={"hspace": 0.65, "right": 0.84})
    horizon, colors = told[0].shape[1], ("#3a3a3a", *COLORS[1::-1])
    shown = min(7, len(told[0]) // horizon) * horizon
    lines = [series[-shown:], *(each[horizon - shown - 1 :: horizon].flatten() for each in told)]
    for line, color in zip(lines, colors, strict=True):
        top.plot(line, color=color, linewidth=2.2 if color in COLORS else 1.3)
    names = ("series", "torch", "slimrnn")
    label_ends(top, [(name, float(line[-1]), color) for name, line, color in zip(names, lines, colors, strict=True)])
    top.margins(x=0.01)
    top.set_xlabel("steps", fontsize=12)
    styled(
        top, f"The next {horizon} steps, forecast again and again", "at the end of the series, where no net was trained"
    )
    bars = bottom.barh(list(errors), list(errors.values()), color=[*colors[1:], *[PALE] * (len(errors) - 2)])
    bottom.bar_label(bars, labels, padding=5, fontsize=11.5)
    bottom.invert_yaxis()
    styled(bottom, "Mean absolute error", "of the forecasts at all steps of the last fifth of the series")
    bottom.grid(False)
    bottom.xaxis.set_visible(False)
    bottom.spines["bottom"].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
