"""What the gates of a layer do on data.

    GRU    r, u = σ(z_r), σ(z_u),          n = tanh(z_n);   h_t = u ⊙ h_{t−1} + (1 − u) ⊙ n
    LSTM   i, f, o = σ(z_i), σ(z_f), σ(z_o), g = tanh(z_g);   c_t = f ⊙ c_{t−1} + i ⊙ g

The gate that multiplies what was there before, u or f, *carries*. Lemma 1.2 of the factorized paper: with finite
weights and bounded inputs and states there is an α_g > 0 with σ(·) ≤ 1 − α_g at all times, so that by lemma 1.1 what
the gate carries is forgotten at least that fast. (In the paper's eq. 7 it is i, in eq. 13 it is 1 − u that carries;
here f and u do.) Measured on data, α_g is 1 minus the largest value seen.

Shape suffixes: T time, B batch, H hidden units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from slimrnn.analysis.memory._signals import Signal, signals_of
from slimrnn.analysis.model.trajectory import Layer, Lengths, Trajectory, run
from slimrnn.layers.stack import States

Array = NDArray[np.float64]

LEVELS = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
RANGES = {"sigmoid": (0.0, 1.0), "fixed": (0.0, 1.0), "tanh": (-1.0, 1.0)}


@dataclass(frozen=True, eq=False)
class GateActivity:
    """One gate of one core over all steps and sequences. Arrays of H have one value for each unit."""

    core: int  #: number among the layer's cores
    layer: int  #: depth · directions + direction, as torch numbers its states
    backward: bool
    transition: int  #: 0; with transition_depth > 1 the number of the cell within the step
    name: str  #: reset, update, candidate; input, forget, output; hidden (Elman); leak, carry (with leaky units)
    kind: str  #: sigmoid, tanh, relu, modrelu, identity; fixed, where a leak takes part
    edges: Array  #: of the histogram (bins + 1)
    counts: NDArray[np.int64]  #: (bins)
    levels: Array  #: of the quantiles
    quantiles: Array  #: over time, sequences and units
    mean: Array  #: (H)
    smallest: Array  #: (H)
    largest: Array  #: (H): sup over time and sequences, 1 − α_g of lemma 1.2
    low_share: Array  #: (H): share of values in the lowest part of the range; of relu and modrelu, share of zeros
    high_share: Array  #: (H): in the highest part
    alpha: Array | None  #: (H): 1 − largest without cancellation, of gates between 0 and 1
    forgetting_time: Array | None  #: (H), of gates that carry: steps 1/(1 − f), f the geometric mean of the gate
    longest_forgetting_time: Array | None  #: (H), of gates that carry: steps 1/α_g, a bound by lemma 1.2

    @property
    def low(self) -> float:
        """Share of all values in the lowest part of the range."""
        return float(self.low_share.mean())

    @property
    def high(self) -> float:
        """Share of all values in the highest part of the range."""
        return float(self.high_share.mean())

    @property
    def saturated(self) -> float:
        """Share of all values at either end."""
        return self.low + self.high


def measure_gates(
    layer: Layer,
    x: Tensor | PackedSequence,
    lengths: Lengths | None = None,
    hx: States | None = None,
    *,
    low: float = 0.1,
    high: float = 0.9,
    bins: int = 50,
) -> list[GateActivity]:
    """Every gate of every core of `layer` (ours or torch.nn's), run on x as our layers take it.

    A gate is saturated below `low` and above `high`. They are places within the range, so for tanh 0.1 and 0.9 mean
    −0.8 and 0.8: in both cases the slope there is 36 % of its largest. A unit that is relu or modReLU counts as low
    where it is off (0); the identity never saturates. A forgetting time is in steps of the data, so with `delays` it
    is that many times longer. Values of padding are left out. Memory: a few times T · B · G · H numbers."""
    if not 0 <= low < high <= 1:
        raise ValueError(f"expected 0 <= low < high <= 1, got {low} and {high}")
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"expected bins to be a positive int, got {bins!r}")
    return activities(run(layer, x, lengths, hx), (low, high), bins)


def activities(
    trajectories: Sequence[Trajectory], ends: tuple[float, float] = (0.1, 0.9), bins: int = 50
) -> list[GateActivity]:
    """Of cores that have run."""
    return [
        _activity(trajectory, number, signal, ends, bins)
        for trajectory in trajectories
        for number, signal in signals_of(trajectory)
    ]


def gate_values(
    layer: Layer, x: Tensor | PackedSequence, lengths: Lengths | None = None, hx: States | None = None
) -> list[dict[str, Array]]:
    """For every core, the values of its gates (T, B, H) by name; NaN beyond the end of a sequence.

    Names as in GateActivity; with transition_depth > 1 those of later cells have their number behind: "update 1"."""
    found: list[dict[str, Array]] = []
    for trajectory in run(layer, x, lengths, hx):
        padding_TB1 = ~trajectory.valid.unsqueeze(-1)
        found.append({})
        for number, signal in signals_of(trajectory):
            values = trajectory.in_time(signal.values.masked_fill(padding_TB1, torch.nan))
            found[-1][f"{signal.name} {number}" if number else signal.name] = values.cpu().numpy()
    return found


def _activity(
    trajectory: Trajectory, transition: int, signal: Signal, ends: tuple[float, float], bins: int
) -> GateActivity:
    valid = trajectory.valid
    values = signal.values[valid].cpu().numpy()  # (N, H)
    rest = None if signal.rest is None else signal.rest[valid].cpu().numpy()
    span = RANGES.get(signal.kind, (min(values.min(), 0.0), max(values.max(), 1.0)))
    counts, edges = np.histogram(values, bins, span)
    low_share, high_share = _saturation(values, signal.kind, ends)
    usual = longest = None
    if signal.carries and rest is not None:
        usual, longest = _forgetting(values, rest, trajectory.core.delay)
    return GateActivity(
        core=trajectory.number,
        layer=trajectory.layer,
        backward=trajectory.backward,
        transition=transition,
        name=signal.name,
        kind=signal.kind,
        edges=edges.astype(np.float64),
        counts=counts.astype(np.int64),
        levels=np.array(LEVELS),
        quantiles=np.quantile(values, LEVELS),
        mean=values.mean(0),
        smallest=values.min(0),
        largest=values.max(0),
        low_share=low_share,
        high_share=high_share,
        alpha=None if rest is None else rest.min(0),
        forgetting_time=usual,
        longest_forgetting_time=longest,
    )


def _saturation(values_NH: Array, kind: str, ends: tuple[float, float]) -> tuple[Array, Array]:
    """Shares (H) of low and of high values."""
    if kind in RANGES:
        bottom, top = RANGES[kind]
        low, high = (bottom + end * (top - bottom) for end in ends)
        return (values_NH < low).mean(0), (values_NH > high).mean(0)
    never = np.zeros(values_NH.shape[1])
    return (values_NH == 0).mean(0) if kind in ("relu", "modrelu") else never, never


def _forgetting(values_NH: Array, rest_NH: Array, delay: int) -> tuple[Array, Array]:
    """1/(1 − f) for the geometric mean f, since what remains after many steps is the product of the gates; 1/α_g."""
    with np.errstate(divide="ignore"):  # a gate at 0 forgets at once, one at 1 never
        logarithms = np.where(values_NH < 0.5, np.log(values_NH), np.log1p(-rest_NH))  # both exact
        return -delay / np.expm1(logarithms.mean(0)), delay / rest_NH.min(0)
