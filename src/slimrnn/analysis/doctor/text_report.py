"""A diagnosis as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from slimrnn.analysis.doctor.advice import REMEMBERED
from slimrnn.analysis.doctor.finding import Finding
from slimrnn.analysis.doctor.formatting import from_unitary, percent, steps, tenfold
from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.doctor.limits import QUICK, THOROUGH

MARKS = {"problem": "!!", "hint": " !", "fine": "ok"}
WIDTH = 100
GATE_NAMES = {
    "h": "recurrent",
    "r": "reset",
    "u": "update",
    "n": "candidate",
    "i": "input",
    "f": "forget",
    "g": "candidate",
    "o": "output",
}


def gate_name(gate: str) -> str:
    """ "update" for "u", "update skip" for "u.skip"."""
    first, dot, rest = gate.partition(".")
    return GATE_NAMES.get(first, first) + (f" {rest}" if dot else "")


def text_report(model: str, layers: Sequence[LayerDiagnosis], findings: Sequence[Finding]) -> str:
    """What was measured, layer by layer, and what follows."""
    parts = [_wrapped("", f"{headline(model, layers, findings)}. {' '.join(lead(layers, findings))}")]
    for layer in layers:
        rows = [*measured(layer), *(("left out", f"{name}: {why}") for name, why in layer.left_out.items())]
        lines = [f"{layer.name}: {layer.description}"]
        lines += [_wrapped(f"  {name:<12}", text) for name, text in rows]
        parts.append("\n".join(lines))
    parts.append("\n".join(_told(finding) for finding in findings) or "nothing to remark")
    return "\n\n".join(parts)


def headline(model: str, layers: Sequence[LayerDiagnosis], findings: Sequence[Finding]) -> str:
    """One or two sentences."""
    count = f"{len(layers)} recurrent layer{'s' if len(layers) > 1 else ''}"
    read = max(layers, key=lambda layer: layer.steps)
    data = f" on {_sequences(read)} of {steps(read.steps)}" if read.steps else ""
    counts = {kind: sum(finding.severity == kind for finding in findings) for kind in ("problem", "hint")}
    told = " and ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in counts.items() if number)
    return f"{model}: {count}{data}; {told or 'no problems'}"


def _sequences(layer: LayerDiagnosis) -> str:
    """How many were read, and why not all."""
    number = f"{layer.sequences} sequence{'s' if layer.sequences > 1 else ''}"
    if layer.given <= layer.sequences:
        return number
    if layer.sequences == QUICK.sequences:
        why = f"to be quick; thorough=True reads {THOROUGH.sequences}"
    else:
        why = "the most it reads" if layer.sequences == THOROUGH.sequences else "the others are too short"
    return f"{layer.sequences} of {layer.given:,} sequences ({why})"


def lead(layers: Sequence[LayerDiagnosis], findings: Sequence[Finding]) -> Iterator[str]:
    """What the net can reach, what limits it, and what to do, in sentences."""
    known = [layer for layer in layers if layer.reach is not None]
    if known:
        best = max(known, key=lambda layer: layer.reach.memory_length(REMEMBERED) if layer.reach else 0.0)
        assert best.reach is not None
        memory = best.reach.memory_length(REMEMBERED)
        told = f"for more than {steps(int(best.reach.lags[-1]))}" if memory == math.inf else f"for {steps(memory)}"
        yield f"It reaches back {told}: so long gradients stay above {percent(REMEMBERED)} of their peak ({best.name})."
    limits = [finding for finding in findings if finding.severity == "problem"] or [
        finding for finding in findings if finding.severity == "hint"
    ]
    if limits:
        yield f"What limits it most: {limits[0].seen} ({limits[0].layer}). What to do: {limits[0].advice}"
    elif known:
        yield "Nothing was found that limits it on these data."


def measured(layer: LayerDiagnosis) -> Iterator[tuple[str, str]]:
    """What each measure says, in a line."""
    if layer.reach is not None:
        yield "reach", _reach(layer)
    if layer.memory_range is not None:
        verdict = layer.memory_range
        held = sum(holds for _, holds in verdict.conditions.values())
        word = "the layer forgets" if verdict.short_range else "the layer need not forget"
        yield (
            "theory",
            f"{word}: a change of the state is multiplied by {verdict.decay:.4g} per step{_how_fast(verdict.decay)}; "
            + (
                f"{held} of {len(verdict.conditions)} conditions of the theorem hold"
                if verdict.conditions
                else "by measurement"
            ),
        )
    for matrix in layer.spectra if layer.candidate is None else (layer.candidate,):
        yield (
            "spectrum",
            f"{gate_name(matrix.gate)} matrix: radius {matrix.spectral_radius:.4g}, norm {matrix.spectral_norm:.4g}, "
            f"condition {matrix.condition_number:.3g}, {from_unitary(matrix.unitarity_drift)}",
        )
    if layer.gates:
        yield "gates", _gates(layer)
    if layer.convergence is not None:
        yield "dependence", f"of the states on these data: {layer.convergence.summary()}"
    if layer.long_memory is not None and layer.long_memory.pooled is not None:
        one = layer.long_memory.pooled
        yield "long memory", f"d = {float(one.d):.2f} ({float(one.low):.2f} to {float(one.high):.2f}), {one.method}"
    if layer.capacity is not None:
        yield "capacity", f"{layer.remembered:.3g} past numbers of at most {layer.most_remembered}, from random inputs"
    cost = layer.cost
    yield (
        "cost",
        f"{cost.parameters:,} parameters ({percent(cost.parameter_ratio)} of dense), {cost.macs:,} multiply-adds per "
        f"step ({percent(cost.mac_ratio)}), state of {cost.state_size:,} numbers",
    )


def _how_fast(factor: float) -> str:
    return "" if abs(factor - 1) < 1e-5 else f", {tenfold(factor)}"


def _reach(layer: LayerDiagnosis) -> str:
    reach = layer.reach
    assert reach is not None
    memory, half, longest = reach.memory_length(REMEMBERED), reach.half_life(), steps(int(reach.lags[-1]))
    gone = (
        f"still at {percent(layer.kept_at_the_end)} of their peak after {longest}"
        if memory == math.inf
        else f"at {percent(REMEMBERED)} of their peak after {steps(memory)}"
    )
    life = "" if half == math.inf else f", half-life {steps(half)}"
    return f"gradients change by {reach.per_step():.4g} per step, {gone}{life}"


def _gates(layer: LayerDiagnosis) -> str:
    gate = layer.carrying
    if gate is None:
        gate = layer.gates[-1]
        ends = (
            f"off {percent(gate.low)}" if gate.kind in ("relu", "modrelu") else f"saturated {percent(gate.saturated)}"
        )
        return f"{gate.name} units: {ends} of the time"
    assert gate.forgetting_time is not None
    middle, longest = float(np.median(gate.forgetting_time)), float(gate.forgetting_time.max())
    return (
        f"{gate.name}: {gate.mean.mean():.2f} in the mean, below 0.1 {percent(gate.low)} and above 0.9 "
        f"{percent(gate.high)} of the time; units forget in {middle:.3g} (median) to {longest:.3g} steps"
    )


def _told(finding: Finding) -> str:
    lines = [_wrapped(f"{MARKS[finding.severity]} ", f"{finding.layer}: {finding.seen}")]
    if finding.advice:
        lines.append(_wrapped("   → ", finding.advice))
    lines.append(_wrapped("   because: ", finding.reason))
    return "\n".join(lines)


def _wrapped(start: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False)
