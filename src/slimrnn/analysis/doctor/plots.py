"""The plots of a diagnosis.

Every function draws one figure of some layers, each with the name of its net, and gives None where none of them has
what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slimrnn.analysis.doctor._axes import INK, SIZE, draw_legend, draw_level, new_axes, set_style
from slimrnn.analysis.doctor.advice import REMEMBERED
from slimrnn.analysis.doctor.captioned_figure import CaptionedFigure
from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.doctor.text_report import gate_name
from slimrnn.analysis.memory.gates import GateActivity
from slimrnn.plotting import COLORS, GREY, GRID

DRAWN_EIGENVALUES = 2000  # beyond, every so many
LOWEST_POWER = -16  # of ten, below which a gradient is nothing beside its peak
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class PlottedLayer:
    """A layer, the name of its net, and its colour."""

    label: str
    layer: LayerDiagnosis
    color: str


# --- gradients --------------------------------------------------------------------------------------------


def reach_figure(plotted: Sequence[PlottedLayer], name: str) -> CaptionedFigure | None:
    """Gradients against the lag."""
    curves = [(one, one.layer.reach) for one in plotted if one.layer.reach is not None]
    if not curves:
        return None
    figure, axes = new_axes("steps back", "gradient, share of its peak")
    lowest = 1.0
    for one, reach in curves:
        assert reach is not None
        logs = (reach.curve() - reach.curve().max()) / math.log(10)
        lowest = min(lowest, float(logs[np.isfinite(logs)].min()))
        axes.plot(reach.lags, logs, color=one.color, linewidth=2.2, label=_named(one, "of the state"))
        through = one.layer.input_reach
        if through is not None and len(plotted) == 1:
            curve = (through.curve() - through.curve().max()) / math.log(10)
            axes.plot(through.lags, curve, color=COLORS[1], linewidth=1.6, label="of the input")
            lowest = min(lowest, float(curve[np.isfinite(curve)].min()))
        half = reach.half_life()
        if math.isfinite(half):
            axes.plot(half, math.log10(0.5), "o", color=one.color, markersize=7, markeredgecolor="white", zorder=3)
    draw_level(axes, math.log10(REMEMBERED), f"{REMEMBERED:.0%}")
    lowest = max(min(lowest, math.log10(REMEMBERED)) - 0.3, LOWEST_POWER)
    axes.set_ylim(lowest, -lowest / 20)
    axes.locator_params(axis="y", integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: _power(value))
    draw_legend(axes)
    caption = " ".join(f"{_prefix(one)}{_reach_in_words(one.layer)}" for one, _ in curves)
    return CaptionedFigure(f"{name}-reach", "How far gradients reach", caption, figure)


def _power(exponent: float) -> str:
    if exponent == round(exponent):
        return f"{10.0**exponent:g}" if exponent > -4 else f"10⁻{str(round(-exponent)).translate(SUPERSCRIPT)}"
    return ""


def _reach_in_words(layer: LayerDiagnosis) -> str:
    reach = layer.reach
    assert reach is not None
    memory, half = reach.memory_length(REMEMBERED), reach.half_life()
    longest = f"more than {int(reach.lags[-1]):,}"
    return (
        f"Effective memory (1 % of the peak, dashed): {longest if memory == math.inf else f'{memory:.3g}'} steps; "
        f"half-life (dot): {longest if half == math.inf else f'{half:.3g}'} steps."
    )


# --- matrices ---------------------------------------------------------------------------------------------


def spectrum_figure(plotted: Sequence[PlottedLayer], name: str) -> CaptionedFigure | None:
    """Eigenvalues in the complex plane."""
    figure, axes = new_axes("real part", "imaginary part")
    angle = np.linspace(0, 2 * np.pi, 361)
    axes.plot(np.cos(angle), np.sin(angle), color=GREY, linewidth=1.1, linestyle="--", zorder=1.5)
    drawn = False
    for one in plotted:
        candidate = one.layer.candidate
        matrices = one.layer.spectra if len(plotted) == 1 or candidate is None else (candidate,)
        for matrix, color in zip(matrices, COLORS * len(matrices), strict=False):
            values = matrix.eigenvalues[:: -(-len(matrix.eigenvalues) // DRAWN_EIGENVALUES) or 1]
            drawn |= bool(len(values))
            axes.plot(
                values.real,
                values.imag,
                "o",
                color=color if len(plotted) == 1 else one.color,
                markersize=4,
                alpha=0.75,
                markeredgewidth=0,
                label=_named(one, gate_name(matrix.gate)),
            )
    if not drawn:
        return None
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    draw_legend(axes)
    caption = " ".join(f"{_prefix(one)}{_radii(one.layer)}" for one in plotted) + " The dashed circle has radius 1."
    return CaptionedFigure(f"{name}-spectrum", "Eigenvalues of the recurrent matrices", caption, figure)


def _radii(layer: LayerDiagnosis) -> str:
    radii = ", ".join(f"{gate_name(one.gate)} {one.spectral_radius:.3g}" for one in layer.spectra)
    return f"Spectral radius: {radii}."


# --- gates ------------------------------------------------------------------------------------------------


def gates_figure(plotted: Sequence[PlottedLayer], name: str) -> CaptionedFigure | None:
    """How often gates have which values."""
    figure, axes = new_axes("value", "density")
    told = []
    for one in plotted:
        gates = _gates_of(one.layer, alone=len(plotted) == 1)
        for gate, color in zip(gates, COLORS * max(1, len(gates)), strict=False):
            density = gate.counts / (gate.counts.sum() * np.diff(gate.edges))
            chosen = color if len(plotted) == 1 else one.color
            axes.stairs(density, gate.edges, color=chosen, linewidth=1.8, label=_named(one, gate.name))
            if gate.forgetting_time is not None or len(gates) == 1:
                axes.stairs(density, gate.edges, color=chosen, alpha=0.18, fill=True)
                told.append(f"{_prefix(one)}{_saturation(gate)}")
    if not axes.patches:
        return None
    axes.set_ylim(bottom=0)
    draw_legend(axes)
    return CaptionedFigure(f"{name}-gates", "What the gates do", " ".join(told), figure)


def _gates_of(layer: LayerDiagnosis, alone: bool) -> Sequence[GateActivity]:
    """Of one net the gates, and of a net without any the units; of two nets the gates that carry, which compare."""
    if not alone:
        return [] if layer.carrying is None else [layer.carrying]
    return [gate for gate in layer.gates if gate.kind in ("sigmoid", "fixed")] or layer.gates[-1:]


def _saturation(gate: GateActivity) -> str:
    if gate.kind in ("relu", "modrelu"):
        return f"Units are off {gate.low:.0%} of the time."
    return f"{gate.name.capitalize()}: lowest tenth {gate.low:.0%}, highest tenth {gate.high:.0%} of the time."


def forgetting_figure(plotted: Sequence[PlottedLayer], name: str) -> CaptionedFigure | None:
    """1/(1 − f) of every unit."""
    figure, axes = new_axes("units, the longest first", "steps")
    told = []
    for one in plotted:
        times = one.layer.forgetting_times
        if times is None:
            continue
        finite = times.clip(max=1e9)
        axes.plot(np.linspace(0, 1, len(finite)), finite, color=one.color, linewidth=2.2, label=one.label or None)
        told.append(
            f"{_prefix(one)}Half of the units forget within {np.median(times):.3g} steps, the slowest in "
            f"{times[0]:.3g}."
        )
    if not told:
        return None
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}" if value < 1e4 else f"{value:.0e}")
    if max(one.layer.steps for one in plotted):
        draw_level(axes, max(one.layer.steps for one in plotted), "length of the data")
    draw_legend(axes)
    return CaptionedFigure(f"{name}-forgetting", "How soon units forget", " ".join(told), figure)


# --- data -------------------------------------------------------------------------------------------------


def dependence_figure(plotted: Sequence[PlottedLayer], name: str) -> CaptionedFigure | None:
    """Norms of the autocorrelations and their partial sums."""
    known = [(one, one.layer.autocorrelation) for one in plotted if one.layer.autocorrelation is not None]
    if not known:
        return None
    figure, below = new_axes("steps apart", "sum")
    figure.set_size_inches(SIZE[0], 4.4)
    grid = figure.add_gridspec(2, 1)
    below.set_subplotspec(grid[1])
    above = figure.add_subplot(grid[0], sharex=below)
    set_style(above, "", "norm of correlation")
    above.tick_params(labelbottom=False)
    figure.align_ylabels()
    for one, found in known:
        assert found is not None
        above.plot(found.lags, found.norms, color=one.color, linewidth=2, label=_named(one, "norm"))
        below.plot(found.lags, found.sums_above_noise, color=one.color, linewidth=2)
        for axes, low, high, shift in (
            (above, found.norms_low, found.norms_high, 0.0),
            (below, found.sums_low, found.sums_high, np.cumsum(found.noise)),
        ):
            if low is not None and high is not None:
                axes.fill_between(found.lags, low - shift, high - shift, color=one.color, alpha=0.15, linewidth=0)
        above.plot(found.lags[1:], found.noise[1:], color=one.color, linewidth=1.1, linestyle="--")
    draw_legend(above)
    told = [
        f"{_prefix(one)}{one.layer.convergence.summary().capitalize()}." for one, _ in known if one.layer.convergence
    ]
    caption = " ".join(told) + " Dashed: what noise alone gives, which the sum below leaves out. Bands: 95 %."
    return CaptionedFigure(f"{name}-dependence", "How long states depend on each other", caption, figure)


def capacity_figure(plotted: Sequence[PlottedLayer], name: str) -> CaptionedFigure | None:
    """The memory-capacity curve."""
    figure, axes = new_axes("steps back", "share decoded (r²)")
    told = []
    for one in plotted:
        found = one.layer.capacity
        if found is None:
            continue
        r2 = found.r2.mean(1).clip(0)
        axes.plot(np.arange(len(r2)), r2, color=one.color, linewidth=2.2, label=one.label or None)
        axes.fill_between(np.arange(len(r2)), r2, color=one.color, alpha=0.12, linewidth=0)
        told.append(
            f"{_prefix(one)}{one.layer.remembered:.3g} of at most {one.layer.most_remembered} numbers of the past."
        )
    if not told:
        return None
    axes.set_ylim(0, 1.03)
    draw_legend(axes)
    return CaptionedFigure(f"{name}-capacity", "What the output still tells of random inputs", " ".join(told), figure)


def structure_figure(plotted: Sequence[PlottedLayer], name: str) -> CaptionedFigure | None:
    """Parameters and multiply-adds against those of dense matrices."""
    figure, axes = new_axes("", "")
    labels, told = [], []
    for place, one in enumerate(plotted):
        cost = one.layer.cost
        counts = (("parameters", cost.parameters, cost.dense_parameters), ("multiply-adds", cost.macs, cost.dense_macs))
        for row, (what, value, dense) in enumerate(counts):
            y = -(2.3 * place + row)
            axes.barh(y, dense, height=0.7, color=GRID)
            axes.barh(y, value, height=0.7, color=one.color)
            text = f"{value:,}" if value == dense else f"{value:,} of {dense:,}"
            axes.annotate(
                text, (max(value, dense), y), (4, 0), textcoords="offset points", va="center", fontsize=10, color=INK
            )
            labels.append((y, _named(one, what)))
        told.append(
            f"{_prefix(one)}{cost.parameter_ratio:.0%} of the parameters and {cost.mac_ratio:.0%} of the multiply-adds "
            "of dense matrices."
        )
    axes.set_yticks([y for y, _ in labels], [text for _, text in labels])
    axes.grid(False)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, 1.55 * max(max(one.layer.cost.dense_parameters, one.layer.cost.dense_macs) for one in plotted))
    figure.set_size_inches(SIZE[0], 0.4 + 0.5 * len(labels))
    return CaptionedFigure(f"{name}-structure", "What the layer costs", " ".join(told), figure)


def _named(one: PlottedLayer, what: str) -> str:
    return f"{one.label}: {what}" if one.label else what


def _prefix(one: PlottedLayer) -> str:
    return f"{one.label}: " if one.label else ""


PLOTS: tuple[Callable[[Sequence[PlottedLayer], str], CaptionedFigure | None], ...] = (
    reach_figure,
    spectrum_figure,
    gates_figure,
    forgetting_figure,
    dependence_figure,
    capacity_figure,
    structure_figure,
)
