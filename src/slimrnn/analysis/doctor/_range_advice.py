"""Whether a layer forgets and how long its states depend on each other on the data, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

from slimrnn.analysis.doctor.finding import Finding
from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis

FURTHER = (
    "where dependence has no scale, as in text or clicks, take a larger state with a structure, whose information "
    "grows with the number of units (prop. 1.4)."
)
DEFINITION = "definition 1.1: long is what has correlations without a finite sum, as far as the data tell"


def about_range(layer: LayerDiagnosis) -> Iterator[Finding]:
    """The verdict on the layer, which theorem 1.1 or a measurement gives, and that on the states, whose correlations
    have two sources: the layer and what it reads."""
    verdict, seen = layer.memory_range, _correlations(layer)
    if verdict is None:
        if seen:
            yield Finding(
                "fine", layer.name, f"on these data, the correlations of its states are {seen}", "", DEFINITION
            )
        return
    source, says = ("props. 1.1 and 1.2", "say") if layer.view.kind == "rnn" else ("theorem 1.1", "says")
    change = f"a small change of the state is multiplied by {verdict.decay:.4g} per step"
    follows = _and_states(layer, verdict.short_range, seen)
    if not verdict.short_range:
        reason = f"{source}: its conditions do not force it to forget"
        yield Finding("fine", layer.name, f"the layer need not forget: {change}{follows}", "", reason)
    elif verdict.theorem:
        told = f"the layer forgets exponentially, as {source} {says}: {change}, and all conditions hold{follows}"
        reason = f"{source}: what it keeps of an input falls exponentially, so it adds a finite sum of correlations"
        yield Finding("hint", layer.name, told, FURTHER, reason)
    else:
        unmet = ", ".join(name for name, (_, holds) in verdict.conditions.items() if not holds)
        why = f"not all conditions of {source} are met ({unmet})" if unmet else "the theorem is not about this cell"
        told = f"the layer forgets exponentially, by measurement: {change}{follows}"
        yield Finding("fine", layer.name, told, "", f"{why}, so nothing forces it to")


def _and_states(layer: LayerDiagnosis, forgets: bool, seen: str) -> str:
    if not seen or layer.convergence is None:
        return ""
    long = layer.convergence.verdict == "long"
    if forgets and long:
        return f"; the correlations of its states are {seen}, so here they come from what it reads"
    if not forgets and layer.convergence.verdict == "short":
        return f"; yet on these data the correlations of its states are {seen}"
    return f"; on these data the correlations of its states are {seen}"


def _correlations(layer: LayerDiagnosis) -> str:
    """ "long (a power law fits better ...)"."""
    if layer.convergence is None:
        return ""
    verdict, _, why = layer.convergence.summary().partition(": ")
    return f"{verdict} ({why})"
