"""The figures of docs/analysis-dependence.md: `python docs/figures/dependence.py` writes them beside itself, or into a
directory given. `python docs/figures/dependence.py --tables` prints the page's tables, which takes some minutes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from figure_style import LEGEND, save, styled, two_panels
from matplotlib.figure import Figure
from numpy.typing import NDArray

from slimrnn.analysis import (
    LongMemory,
    ar1,
    ar1_autocovariances,
    arfima,
    arfima_autocovariances,
    autocorrelation_norms,
    convergence,
    dfa,
    fractional_gaussian_noise,
    gph,
    local_whittle,
    white_noise,
)
from slimrnn.plotting import COLORS, GREY

Array = NDArray[np.float64]
Draw = Callable[[int, int], Array]  # steps, seed → one series

BLUE, RED, GREEN = COLORS[:3]
ESTIMATORS: tuple[tuple[Callable[[Array], LongMemory], str], ...] = ((local_whittle, BLUE), (gph, RED), (dfa, GREEN))
LENGTHS = (1024, 4096)


# --- tables -----------------------------------------------------------------------------------------------


def estimators_table(series: int = 2000) -> Iterator[str]:
    """Mean error of d, standard deviation, and coverage of the 95 % interval, over independent series."""
    yield "| process | T |" + "".join(f" {name}: error | sd | coverage |" for name in ("local Whittle", "GPH", "DFA"))
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for steps in LENGTHS:
        for i in range(10):
            d = i % 5 / 10
            if i < 5:
                name, x = f"fGn H = {d + 0.5:g}", fractional_gaussian_noise(d + 0.5, steps, seed=100 + i, series=series)
            else:
                name, x = f"ARFIMA d = {d:g}", arfima(d, steps, seed=100 + i, series=series)
            cells = []
            for estimate, _ in ESTIMATORS:
                found = estimate(x)
                covered = ((found.low <= d) & (d <= found.high)).mean()
                cells.append(f"{round(found.d.mean() - d, 3) + 0.0:+.3f} | {found.d.std():.3f} | {100 * covered:.1f} %")
            yield f"| {name} | {steps} | {' | '.join(cells)} |".replace("-", "−")


def ar1_plus_noise(steps: int, seed: int) -> Array:
    """An AR(1) with φ = 0.9 and as much variance as the white noise on it."""
    signal = ar1(0.9, steps, seed)
    return np.asarray(signal * (1 - 0.9**2) ** 0.5 + white_noise(steps, seed + 10**6))


PROCESSES: dict[str, Draw] = {
    "white noise": white_noise,
    **{f"AR(1) φ = {phi:g}": partial(ar1, phi) for phi in (0.3, 0.5, 0.7, 0.9, 0.95)},
    "AR(1) φ = 0.9 + white noise": ar1_plus_noise,
    **{f"ARFIMA d = {d:g}": partial(arfima, d) for d in (0.1, 0.2, 0.3, 0.4)},
    "random walk": lambda steps, seed: white_noise(steps, seed).cumsum(),
}


def verdicts_table(trials: int = 200) -> Iterator[str]:
    yield "| process | T | short | undecided | long |"
    yield "|---|---|---|---|---|"
    for steps in LENGTHS:
        for name, draw in PROCESSES.items():
            counts = Counter(convergence(draw(steps, seed)).verdict for seed in range(trials))
            shares = [f"{100 * counts[verdict] / trials:g} %" for verdict in ("short", "undecided", "long")]
            yield f"| {name} | {steps} | {' | '.join(shares)} |"


def bands_table(trials: int = 200, lags: int = 64) -> Iterator[str]:
    """How often the 95 % bands hold the true norm, over lags 1 to 64, and the true sum at lag 64."""
    yield "| process | T | norms | sum |"
    yield "|---|---|---|---|"
    truths: dict[str, tuple[Draw, Array]] = {"white noise": (white_noise, np.eye(1, lags + 1)[0])}
    for phi in (0.5, 0.9):
        truths[f"AR(1) φ = {phi:g}"] = (PROCESSES[f"AR(1) φ = {phi:g}"], ar1_autocovariances(phi, lags))
    truths["ARFIMA d = 0.3"] = (PROCESSES["ARFIMA d = 0.3"], arfima_autocovariances(0.3, lags))
    for steps in LENGTHS:
        for name, (draw, covariances) in truths.items():
            norms, sums = [], []
            for seed in range(trials):
                found, true = autocorrelation_norms(draw(steps, seed), lags, seed=seed), covariances / covariances[0]
                norms.append(((found.norms_low <= true) & (true <= found.norms_high))[1:])
                sums.append(found.sums_low[-1] <= true.sum() <= found.sums_high[-1])
            yield f"| {name} | {steps} | {100 * np.mean(norms):.1f} % | {100 * np.mean(sums):.1f} % |"


# --- figures ----------------------------------------------------------------------------------------------


def draw_norms(steps: int = 4096, lags: int = 256) -> Figure:
    figure, (norms, sums) = two_panels()
    shown = (
        ("AR(1), φ = 0.9", BLUE, ar1(0.9, steps, seed=0), ar1_autocovariances(0.9, lags)),
        ("ARFIMA, d = 0.3", RED, arfima(0.3, steps, seed=0), arfima_autocovariances(0.3, lags)),
    )
    for name, color, x, covariances in shown:
        found, true = autocorrelation_norms(x, lags), covariances / covariances[0]
        norms.fill_between(found.lags, found.norms_low, found.norms_high, color=color, alpha=0.15, linewidth=0)
        norms.plot(found.lags, found.norms, color=color, linewidth=1.8, label=name)
        norms.plot(found.lags, true, color=color, linewidth=1.2, linestyle=(0, (4, 3)))
        sums.plot(found.lags, found.sums_above_noise, color=color, linewidth=2.2, label=name)
        sums.plot(found.lags, true.cumsum(), color=color, linewidth=1.2, linestyle=(0, (4, 3)))
        norms.plot(found.lags[1:], found.noise[1:], color=GREY, linewidth=1)
    norms.set(xscale="log", xlim=(1, lags), ylim=(0, 1))
    norms.annotate("white noise", (1.1, 0.022), color=GREY, fontsize=10)
    styled(norms, "Norms of the autocorrelations", f"T = {steps}, 95 % bands; dashed: true", "lag k", "")
    styled(sums, "Their sums, above the noise", "dashed: true", "up to lag k", "")
    norms.legend(**LEGEND)
    sums.legend(**LEGEND)
    return figure


def draw_estimates(steps: int = 4096, series: int = 300) -> Figure:
    figure, panels = two_panels(sharey=True)
    for axes, name in zip(panels, ("Fractional Gaussian noise", "ARFIMA(0, d, 0)"), strict=True):
        axes.plot((-0.04, 0.44), (-0.04, 0.44), color=GREY, linewidth=1)
        for i in range(5):
            d = i / 10
            fgn = name.startswith("Frac")
            x = fractional_gaussian_noise(d + 0.5, steps, 1, series) if fgn else arfima(d, steps, 1, series)
            for shift, (estimate, color) in zip((-0.02, 0, 0.02), ESTIMATORS, strict=True):
                found = estimate(x)
                low, middle, high = np.quantile(found.d, (0.025, 0.5, 0.975))
                label = found.method if not i else None
                axes.plot((d + shift,) * 2, (low, high), color=color, linewidth=2.2, label=label)
                axes.plot(d + shift, middle, "o", color=color, markersize=4.5)
        styled(axes, name, f"median and the middle 95 % of {series} estimates, T = {steps}", "d", "")
    panels[0].set_ylabel("estimate of d", fontsize=11)
    panels[0].legend(**{**LEGEND, "loc": "upper left"})
    return figure


FIGURES = {"norms": draw_norms, "estimates": draw_estimates}


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        save(draw(), directory / f"dependence-{name}.png")


def tables(arguments: Sequence[str]) -> bool:
    if "--tables" not in arguments:
        return False
    for table in (estimators_table, bands_table, verdicts_table):
        print("\n".join((*table(), "")), flush=True)
    return True


if __name__ == "__main__" and not tables(sys.argv):
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
