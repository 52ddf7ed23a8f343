"""Is the memory of a layer short-range? Theorem 1.1 of the factorized paper, checked on a layer and data.

The theorem: the context of a GRU or LSTM is short-range dependent (its correlations over time have a finite sum,
definition 1.1) if its gates stay below one (lemma 1.2), the spectral radius of the candidate's W_h is below one (prop.
1.1), the variance of the state is constant (prop. 1.2), W_x and W_h have full rank and the input is bounded, never zero
and not determined by the state (prop. 1.3). For nets without gates props. 1.1 and 1.2 say the same.

The proof rests on lemma 1.1: where y_{t+1} = A_t y_t + ε_t and the A_t contract, correlations fall exponentially. So
that is measured, too: by which factor a small change of the state, carried on by the Jacobians A_t = ∂s_t/∂s_{t−1}
along the data, falls per step; and whether other states to start from come to the same, given the same inputs.

The theorem as it is written leaves room. Its proof bounds norms by spectral radii, which holds for normal matrices
only, and no condition is on the recurrent matrices of the gates. An LSTM that meets all conditions can latch: with
f = 0.9, i = o = 1 and a candidate tanh(h/2), c has two stable values, and stays at one for good. Such a net contracts
and yet remembers where it started; here it does not count as short-range.

Shape suffixes: T time, B batch, H hidden units, N rows (steps of all sequences).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from slimrnn.analysis.matrices.spectrum import spectrum
from slimrnn.analysis.memory import _tangents
from slimrnn.analysis.memory._signals import signals_of
from slimrnn.analysis.model.trajectory import Layer, Lengths, Trajectory, run
from slimrnn.cells import ElmanCell, GRUCell, LSTMCell
from slimrnn.layers.stack import States

Array = NDArray[np.float64]

SHORTEST = 16  # steps of a sequence, of which the first quarter is left out
STEADY = 1.5  # the variance counts as constant if it changes by less than this factor
LATCHED = 0.05  # share of other starts that stay apart
ROWS = 4096  # at most, for the regression of the input on the state
UNKNOWN = "theorem 1.1: it is about GRU and LSTM, so only what was measured counts"
CANDIDATE = 2  # among the gates of GRU and LSTM


@dataclass(frozen=True, eq=False)
class MemoryRange:
    """The verdict on one core, and the numbers it rests on."""

    core: int  #: number among the layer's cores
    layer: int  #: depth · directions + direction, as torch numbers its states
    backward: bool
    short_range: bool  #: it contracts or the theorem says so, and other starts do come to the same
    contracting: bool  #: `decay` is below one, by more than two standard errors and than rounding explains
    decay: float  #: factor by which a small change of the state falls per step, along the data
    error: float  #: standard error of log(decay)
    apart: float  #: share of other states to start from that stay apart from the data's, though `decay` is below one
    contraction: float  #: largest norm ‖∂s_t/∂s_{t−1}‖₂ found: below one, every single step contracts
    conditions: dict[str, tuple[float, bool]]  #: of the theorem: the number measured, and whether it holds
    theorem: bool  #: do all hold?
    reasons: tuple[str, ...]  #: in words

    @property
    def time_constant(self) -> float:
        """Steps after which a change has fallen to 1/e; infinite where it does not fall."""
        if not self.contracting:
            return math.inf
        return -1 / math.log(self.decay) if self.decay > 0 else 0.0

    def summary(self) -> str:
        """The verdict and its reasons, line by line."""
        return "\n".join(("short-range" if self.short_range else "not short-range", *self.reasons))


def memory_range(
    layer: Layer,
    x: Tensor | PackedSequence,
    lengths: Lengths | None = None,
    hx: States | None = None,
    *,
    seed: int = 0,
) -> list[MemoryRange]:
    """For every core of `layer` (ours or torch.nn's), run on x as our layers take it: is its memory short-range?

    The decay is the leading Lyapunov exponent: one random change per sequence is carried on by forward-mode derivatives
    in double precision, and the mean of the logarithm of its growth taken over the steps after the first quarter of a
    sequence; the standard error is that of the means over sequences, or over pieces of few sequences. Beyond it, a
    decay within H · ε of one, ε the precision of the weights, cannot be told from one.

    Four other states to start from are drawn for every sequence. One stays apart if over the second half of the
    sequence its distance should fall below 5 % by the decay, but falls by less than the root of that, and ends above
    0.1 % of what it was at first; the net latches if 5 % of them do.

    The conditions, by name, with the number measured:
    "gates" -- α_g, 1 minus the largest value of a gate that carries, must be above the precision of the weights;
    "radius" -- the spectral radius of the candidate's W_h must be below one;
    "variance" -- of h, in the last quarter of the sequences relative to the second, must be between 2/3 and 3/2;
    "rank" -- the smallest singular value of W_x and W_h relative to the largest must be above precision;
    "input" -- the smallest ‖x_t‖_∞ must be above zero;
    "innovation" -- the share of the variance of x_t that is not a linear function of the state before; must be above
    1e-6; NaN, and not counted, with fewer than two steps for each unit.

    A net without gates only has the conditions of props. 1.1 and 1.2: radius and variance. A cell that is none of ours
    has none: the theorem is not about it, and the verdict is what was measured."""
    found = run(layer, x, lengths, hx)
    shortest = int(found[0].valid.sum(0).min())
    if shortest < SHORTEST:
        raise ValueError(f"expected sequences of at least {SHORTEST} steps, got one of {shortest}")
    return [_verdict(trajectory, seed) for trajectory in found]


@torch.no_grad()
def _verdict(trajectory: Trajectory, seed: int) -> MemoryRange:
    exact = copy.deepcopy(trajectory.core).double()
    growth_TB = _tangents.growth(exact, trajectory, seed)
    rate, error = _mean_and_error(growth_TB, _age(trajectory) >= 0.25)
    precision = _precision(trajectory)
    cell = trajectory.core.cell
    known = any(type(cell).step is of.step for of in (ElmanCell, GRUCell, LSTMCell))
    conditions = dict(_conditions(trajectory)) if known else {}
    contracting = rate + 2 * error < -precision
    apart = _tangents.share_apart(exact, trajectory, rate, seed) if contracting else 0.0
    contraction = _tangents.largest_norm(exact, trajectory, seed)
    theorem = known and all(holds for _, holds in conditions.values())
    return MemoryRange(
        core=trajectory.number,
        layer=trajectory.layer,
        backward=trajectory.backward,
        short_range=apart < LATCHED and (contracting or theorem),
        contracting=contracting,
        decay=math.exp(rate),
        error=error,
        apart=apart,
        contraction=contraction,
        conditions=conditions,
        theorem=theorem,
        reasons=(
            _about_decay(rate, error, precision, trajectory),
            *_about_starts(apart),
            _about_steps(contraction),
            *(_about_condition(name, value, holds) for name, (value, holds) in conditions.items()),
            *(_about_theorem(theorem, contracting, apart, isinstance(cell, ElmanCell)) if known else (UNKNOWN,)),
        ),
    )


def _precision(trajectory: Trajectory) -> float:
    """Below which a difference from one means nothing."""
    core = trajectory.core
    return core.cell.hidden_size * torch.finfo(next(core.parameters()).dtype).eps


def _age(trajectory: Trajectory) -> Array:
    """(T, B): which part of its sequence lies before a step; NaN beyond its end."""
    valid = trajectory.valid.cpu().numpy()
    return np.where(valid, np.arange(len(valid))[:, None] / valid.sum(0), np.nan)


def _mean_and_error(growth_TB: Array, counted_TB: NDArray[np.bool_]) -> tuple[float, float]:
    """Mean of the logarithms, and its standard error from at least eight sequences or pieces of them.

    Sequences in which nothing at all is left of a change, as all units are off, count if all are such, only."""
    lasting = [g[c] for g, c in zip(growth_TB.T, counted_TB.T, strict=True) if np.isfinite(g[c]).all()]
    if not lasting:
        return -math.inf, 0.0
    pieces = -(-8 // len(lasting))
    means = [piece.mean() for growth_T in lasting for piece in np.array_split(growth_T, pieces)]
    mean = np.concatenate(lasting).mean()
    return float(mean), float(np.std(means, ddof=1) / len(means) ** 0.5)


# --- the conditions of the theorem ------------------------------------------------------------------------


def _conditions(trajectory: Trajectory) -> Iterator[tuple[str, tuple[float, bool]]]:
    core, precision = trajectory.core, _precision(trajectory)
    gated = not isinstance(core.cell, ElmanCell)
    which = CANDIDATE if gated else 0
    valid = trajectory.valid
    if gated:
        rests = [signal.rest for _, signal in signals_of(trajectory) if signal.carries]
        alpha = min(float(rest[valid].min()) for rest in rests if rest is not None)
        yield "gates", (alpha, alpha > precision)
    spectra = [spectrum(map, which) for map in core.maps]
    radius = max(found.spectral_radius for found in spectra)
    yield "radius", (radius, radius < 1 - precision)
    ratio = _variance_ratio(trajectory)
    yield "variance", (ratio, 1 / STEADY < ratio < STEADY)
    if gated:
        seen = np.linalg.svd(core.input.dense()[which].double().cpu().numpy(), compute_uv=False)
        pairs = [(seen[-1], seen[0]), *((found.smallest_singular_value, found.spectral_norm) for found in spectra)]
        smallest = min(float(low / high) if high > 0 else 0.0 for low, high in pairs)
        yield "rank", (smallest, smallest > precision)
        least = float(trajectory.x[valid].abs().amax(-1).min())
        yield "input", (least, least > 0)
        share = _innovation(trajectory)
        yield "innovation", (share, not share <= 1e-6)  # NaN: not measured


def _variance_ratio(trajectory: Trajectory) -> float:
    """The variance of h in the last quarter of the sequences relative to the second; the first may be a transient."""
    age, h = _age(trajectory), trajectory.h.cpu().to(torch.complex128).numpy()
    early, late = (float(h[(age >= start) & (age < start + 0.25)].var(0).sum()) for start in (0.25, 0.75))
    return late / early if early > 0 else (1.0 if late == 0 else math.inf)


def _innovation(trajectory: Trajectory) -> float:
    """The share of Var(x_t) that is no linear function of h_{t−1}."""
    before = torch.cat([torch.zeros_like(trajectory.h[:1]), trajectory.h[:-1]])
    valid = trajectory.valid
    valid[0] = False
    h, x = before[valid].double().cpu().numpy(), trajectory.x[valid].double().cpu().numpy()
    if len(h) < 2 * h.shape[1] + 2:
        return math.nan
    rows = np.linspace(0, len(h) - 1, min(len(h), max(ROWS, 4 * h.shape[1]))).astype(int)
    h, x = h[rows] - h[rows].mean(0), x[rows] - x[rows].mean(0)
    total = float((x**2).sum())
    if total == 0:
        return 0.0
    spread = h.std(0)
    h = h[:, spread > 0] / spread[spread > 0]
    gram, cross = h.T @ h + 1e-12 * len(h) * np.eye(h.shape[1]), h.T @ x
    explained = float((cross * np.linalg.solve(gram, cross)).sum())
    return min(1.0, float((total - explained) / total * len(h) / (len(h) - h.shape[1] - 1)))


# --- in words ---------------------------------------------------------------------------------------------


def _factor(beyond_one: float) -> str:
    """A number given by what it has beyond one."""
    if abs(beyond_one) < 1e-12:
        return "1"
    if abs(beyond_one) < 1e-3:
        return f"1 {'+' if beyond_one > 0 else '−'} {abs(beyond_one):.2g}"
    return f"{1 + beyond_one:.3g}"


def _about_decay(rate: float, error: float, precision: float, trajectory: Trajectory) -> str:
    kind, steps = type(trajectory.core.cell).__name__.removesuffix("Cell"), len(trajectory.h)
    if rate == -math.inf:
        return f"{kind}: nothing is left of a change of the state: its units are off or see nothing of it"
    factor = f"{kind}: a small change of the state is multiplied by {_factor(math.expm1(rate))} per step"
    if rate + 2 * error < -precision:
        tenfold = -math.log(10) / rate
        beyond = f", more than the {steps} steps of the data" if tenfold > steps else ""
        return f"{factor}, so it falls tenfold every {tenfold:.3g} steps{beyond}"
    if rate - 2 * error > precision:
        return f"{factor}: it grows, the theorem does not speak of this; a chaotic net forgets in its own way"
    return f"{factor}: it neither falls nor grows beyond error and rounding"


def _about_steps(contraction: float) -> str:
    which = "every single step contracts" if contraction < 1 else "not every single step contracts"
    return f"lemma 1.1: {which}, the largest norm of a Jacobian found is {_factor(contraction - 1)}"


def _about_condition(name: str, value: float, holds: bool) -> str:
    said = {
        "gates": f"lemma 1.2: the gate that carries is at most 1 − {value:.3g}",
        "radius": f"prop. 1.1: the spectral radius of W_h is {_factor(round(value - 1, 6))}",
        "variance": f"prop. 1.2: the variance of h changes by a factor of {value:.3g}",
        "rank": f"prop. 1.3: the singular values of W_x and W_h fall to {value:.3g} of the largest",
        "input": f"prop. 1.3: the input is at least {value:.3g} in some channel",
        "innovation": f"prop. 1.3: a share of {value:.3g} of the input's variance is new",
    }[name]
    if math.isnan(value):
        return "prop. 1.3: too few steps to tell how much of the input is new"
    return said if holds else f"{said} (not met)"


def _about_starts(apart: float) -> Iterator[str]:
    if apart >= LATCHED:
        yield f"{apart:.0%} of other states to start from stay apart: it latches, and remembers where it started"


def _about_theorem(theorem: bool, contracting: bool, apart: float, elman: bool) -> Iterator[str]:
    source = "props. 1.1 and 1.2" if elman else "theorem 1.1"
    if not theorem:
        follows = "only what was measured counts" if contracting else "nothing follows"
        yield f"{source}: not all conditions hold, so {follows}"
    elif apart >= LATCHED:
        yield f"{source}: all conditions hold and say short-range, but do not exclude that it latches"
    elif contracting:
        yield f"{source}: all conditions hold, and say short-range"
    else:
        yield f"{source}: all conditions hold and say short-range, though the decay measured does not show it"
