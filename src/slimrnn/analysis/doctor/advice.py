"""From measures to findings: the thresholds, and the rules that use them.

The reasons are those of the factorized paper (props. 1.1 and 1.4, lemma 1.2, theorem 1.1) and of the lecture ("The
Challenge of Long-Term Dependencies").
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from slimrnn.analysis.doctor._range_advice import about_range
from slimrnn.analysis.doctor._remedies import LOOK_AT_BIASES, TO_CALM, bias_of, to_remember_longer
from slimrnn.analysis.doctor.finding import Finding, Severity
from slimrnn.analysis.doctor.formatting import from_unitary, percent, steps, tenfold
from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.matrices.spectrum import Spectrum
from slimrnn.analysis.memory.gates import GateActivity

SEVERITIES: tuple[Severity, ...] = ("problem", "hint", "fine")

REMEMBERED = 0.01  # share of its peak at which a gradient counts as gone
SHORT_MEMORY = 0.1  # a memory below this share of the sequences is a problem, ...
MEDIUM_MEMORY = 0.5  # ... below this share a hint
GROWN = 10.0  # gradients that grow by this factor over the lags are a hint, ...
EXPLODED = 1e3  # ... by this factor a problem
CLOSED = 0.5  # share of a carrying gate's values below 0.1: a problem; of another gate's: a hint
OPEN = 0.7  # share of a carrying gate's values above 0.9: a hint
SATURATED = 0.5  # share of a tanh unit's values beyond ±0.8: a hint
OFF = 0.1  # share of relu or modReLU units that are never on: a problem
NEARLY_UNITARY = 0.5  # ‖WᴴW − I‖₂ below which a matrix counts as meant to be unitary
DRIFTED = 0.01  # such a matrix with more than this: a hint
SINGULAR = 1e6  # condition number of a net without gates above which a direction is lost in every step: a hint
EMPTY = 0.1  # memory capacity below this share of the outputs: a hint
WASTEFUL = 256  # units from which a dense matrix is a hint

HARDLY_TRAINED = 100  # updates below which a net shows how it begins and not what it has learned


def findings(layer: LayerDiagnosis) -> list[Finding]:
    """All that the rules have to say about a layer."""
    rules = (_about_reach, _about_matrix, about_range, _about_gates, _about_capacity, _about_cost)
    return [finding for rule in rules for finding in rule(layer)]


# --- gradients --------------------------------------------------------------------------------------------


def _about_reach(layer: LayerDiagnosis) -> Iterator[Finding]:
    reach = layer.reach
    if layer.overflows:
        radius = "" if layer.candidate is None else f"; spectral radius {layer.candidate.spectral_radius:.3g}"
        seen = f"states do not stay finite on these data{radius}"
        yield Finding(
            "problem", layer.name, seen, TO_CALM, "a state without bounds that is multiplied by more than one"
        )
    if reach is None:
        return
    longest, factor, memory = int(reach.lags[-1]), reach.per_step(), reach.memory_length(REMEMBERED)
    curve = reach.curve()
    grown = math.exp(min(float(curve[-1] - curve[0]), 700.0))
    if grown > GROWN:
        yield Finding(
            "problem" if grown > EXPLODED else "hint",
            layer.name,
            f"{_radius(layer, factor)}gradients grow {tenfold(factor)}, {_times(grown)} over {steps(longest)}",
            TO_CALM,
            "lecture: the gradient is a product of Jacobians, and explodes where their norms stay above one",
        )
    elif memory < MEDIUM_MEMORY * layer.steps and memory <= longest:
        yield _about_forgetting(
            layer,
            memory < SHORT_MEMORY * layer.steps,
            f"{_radius(layer, factor)}gradients fall {tenfold(factor)}, to "
            f"{percent(REMEMBERED)} of their peak within {steps(memory)} of {layer.steps:,}",
            "prop. 1.1 and the lecture: the gradient is a product of Jacobians, and what lies beyond its reach is not "
            "learned from",
        )
    else:
        yield Finding(
            "fine",
            layer.name,
            f"after {steps(longest)} gradients are still at {percent(layer.kept_at_the_end)} of their peak"
            if memory == math.inf
            else f"gradients reach {steps(memory)} of {layer.steps:,} back",
            "",
            "so far back the layer can learn from",
        )


def _about_forgetting(layer: LayerDiagnosis, severe: bool, seen: str, reason: str) -> Finding:
    """What a net that was not trained shows is where it begins, and no fault that it has learned."""
    advice = _to_remember_longer(layer)
    if layer.updates is not None and layer.updates < HARDLY_TRAINED:
        known = f"it has had {layer.updates} update{'' if layer.updates == 1 else 's'}"
    elif layer.updates is None and layer.biases_are_new:
        known = "its biases are exactly those of a new layer"
    else:
        return Finding("problem" if severe else "hint", layer.name, seen, advice, reason)
    return Finding(
        "hint",
        layer.name,
        f"hardly trained: {known}. As it begins, {seen}",
        f"train it and look again. For a longer memory to begin with, {advice}",
        "gates learn to keep what the task needs, as far as gradients reach at the beginning",
    )


def _radius(layer: LayerDiagnosis, factor: float) -> str:
    """The spectral radius, where it explains the factor per step."""
    if layer.candidate is None:
        return ""
    radius = layer.candidate.spectral_radius
    return f"spectral radius {radius:.3g}: " if (radius < 1) == (factor < 1) else ""


def _to_remember_longer(layer: LayerDiagnosis) -> str:
    matrix = layer.candidate
    keeps = layer.view.kind == "rnn" and matrix is not None and matrix.unitarity_drift < NEARLY_UNITARY
    return LOOK_AT_BIASES if keeps else to_remember_longer(layer)


def _times(factor: float) -> str:
    return f"{factor:.3g}-fold" if factor < 1e6 else f"10^{math.log10(factor):.0f}-fold"


def _about_matrix(layer: LayerDiagnosis) -> Iterator[Finding]:
    matrix = layer.candidate
    if layer.view.kind != "rnn" or matrix is None:
        return
    if matrix.unitarity_drift < NEARLY_UNITARY:
        yield _about_unitary(layer, matrix)
        return
    if matrix.spectral_norm < 1:
        yield _about_forgetting(
            layer,
            matrix.steps_per_tenfold < SHORT_MEMORY * layer.steps or not layer.steps,
            f"spectral radius {matrix.spectral_radius:.3g} and norm {matrix.spectral_norm:.3g}: gradients fall at "
            f"least tenfold every {steps(_tenfold_of(matrix.spectral_norm))}",
            "prop. 1.1: norms multiply and the slope of the nonlinearity is at most one, whatever the input",
        )
    if matrix.condition_number > SINGULAR:
        yield Finding(
            "hint",
            layer.name,
            f"the recurrent matrix is nearly singular, with condition number {matrix.condition_number:.1g}",
            "add a diagonal (LowRank(r) + Diagonal()), or use a unitary structure.",
            "directions of the state with a small singular value are forgotten in one step",
        )


def _about_unitary(layer: LayerDiagnosis, matrix: Spectrum) -> Finding:
    drift = matrix.unitarity_drift
    if drift <= DRIFTED:
        seen = f"the recurrent matrix is {from_unitary(drift)}"
        return Finding(
            "fine", layer.name, seen, "", "its powers keep norms, so only the nonlinearity can make gradients vanish"
        )
    return Finding(
        "hint",
        layer.name,
        f"the recurrent matrix is nearly unitary, but off by {drift:.2g}: singular values from "
        f"{matrix.smallest_singular_value:.3g} to {matrix.spectral_norm:.3g}",
        "raise the penalty (--optim.penalty), or train it at a lower rate (--optim.recurrent-rate).",
        "KRU paper, eq. 7: a soft constraint holds the factors near the unitary ones, so that norms stay",
    )


def _tenfold_of(factor: float) -> float:
    return math.log(10) / -math.log(factor) if 0 < factor < 1 else 0.0


def _about_gates(layer: LayerDiagnosis) -> Iterator[Finding]:
    for gate in layer.gates:
        if gate.kind in ("relu", "modrelu"):
            yield from _about_units_off(layer, gate)
        elif gate.forgetting_time is not None and gate.kind == "sigmoid":
            yield from _about_carrying(layer, gate)
        elif gate.kind == "sigmoid" and gate.low > CLOSED:
            yield Finding(
                "hint",
                layer.name,
                f"{gate.name} gates are closed (below 0.1) {percent(gate.low)} of the time",
                "train longer or at a lower rate; a bias that begins higher helps a gate that never opens.",
                "a closed gate passes neither values nor gradients",
            )
        elif gate.name == "hidden" and gate.kind == "tanh" and gate.saturated > SATURATED:
            yield Finding(
                "hint",
                layer.name,
                f"units are saturated (beyond ±0.8) {percent(gate.saturated)} of the time",
                "scale the inputs down, or begin with smaller weights.",
                "the slope of tanh there is below 0.36, which every step multiplies into the gradient",
            )


def _about_carrying(layer: LayerDiagnosis, gate: GateActivity) -> Iterator[Finding]:
    assert gate.forgetting_time is not None
    middle = steps(float(np.median(gate.forgetting_time)))
    if gate.low > CLOSED:
        yield Finding(
            "problem",
            layer.name,
            f"{gate.name} gates are closed (below 0.1) {percent(gate.low)} of the time; half of the units forget "
            f"within {middle}",
            f"raise {bias_of(layer)}.",
            "a closed gate throws the state away",
        )
    elif gate.high > OPEN:
        open_units = float((gate.high_share > 0.9).mean())
        yield Finding(
            "hint",
            layer.name,
            f"{gate.name} gates are above 0.9 {percent(gate.high)} of the time, and nearly always in "
            f"{percent(open_units)} of the units; half of these forget within {middle}",
            "this keeps memory; if the net learns slowly, lower the bias or spread it over the units.",
            "an open gate carries the state on, but lets little that is new in, and its own slope is small",
        )


def _about_units_off(layer: LayerDiagnosis, gate: GateActivity) -> Iterator[Finding]:
    off = float((gate.low_share == 1).mean())
    if off > OFF:
        yield Finding(
            "problem",
            layer.name,
            f"{percent(off)} of the {gate.kind} units were never on",
            "lower the learning rate, begin with higher biases, or take another nonlinearity.",
            "a unit that is off passes no gradient, so it does not come back by itself",
        )


def _about_capacity(layer: LayerDiagnosis) -> Iterator[Finding]:
    if layer.capacity is not None and layer.remembered < EMPTY * layer.most_remembered:
        yield Finding(
            "hint",
            layer.name,
            f"of random inputs, the outputs tell {layer.remembered:.3g} numbers of the past, and could tell "
            f"{layer.most_remembered}",
            "if the task needs exact recall, use a unitary structure with an identity or modReLU nonlinearity.",
            "memory capacity: a linear net that is orthogonal holds as many numbers as it has units",
        )


def _about_cost(layer: LayerDiagnosis) -> Iterator[Finding]:
    if layer.view.structure == "Dense()" and layer.view.hidden_size >= WASTEFUL:
        recurrent, total = layer.recurrent_parameters, layer.cost.parameters
        yield Finding(
            "hint",
            layer.name,
            f"{recurrent:,} of {total:,} parameters ({percent(recurrent / total)}) are dense recurrent matrices",
            "try structure=LowRank(r) + Diagonal(), BlockDiagonal(k) or Kronecker(...): from_torch(layer, structure) "
            "begins with the nearest.",
            "prop. 1.4: what a state can hold grows with its units, not with the parameters that move it",
        )
