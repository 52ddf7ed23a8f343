"""The memory doctor: all measures of all recurrent layers of a model, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn.analysis.doctor import advice
from slimrnn.analysis.doctor._threads import one_thread
from slimrnn.analysis.doctor.finding import Finding
from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.doctor.limits import QUICK, THOROUGH, Limits
from slimrnn.analysis.doctor.measurements import chosen_sequences, measure_layers, sequences_in
from slimrnn.analysis.doctor.text_report import text_report
from slimrnn.analysis.model.costs import layer_costs
from slimrnn.analysis.model.layer_inputs import LayerInput, layer_calls
from slimrnn.analysis.model.layers import LayerView, find_layers, recurrent_modules


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What `diagnose` found; `print` shows it in words."""

    model: str  #: the name of its class
    layers: tuple[LayerDiagnosis, ...]

    @property
    def findings(self) -> list[Finding]:
        """The problems first."""
        found = [finding for layer in self.layers for finding in advice.findings(layer)]
        return sorted(found, key=lambda finding: advice.SEVERITIES.index(finding.severity))

    def __str__(self) -> str:
        return text_report(self.model, self.layers, self.findings)


def diagnose(
    model: nn.Module, *args: Any, thorough: bool = False, updates: int | None = None, **kwargs: Any
) -> Diagnosis:
    """How far back the recurrent layers of a model remember, what limits them, and what to change.

    args, kwargs -- what the model is called with: a batch of sequences, the more of them and the longer the better.
    Without any, only what needs no data is measured.
    updates -- that the net was trained for, where that is known: after few, what is seen is how it begins.
    thorough -- more sequences and lags, exact gradients for states of up to 512 numbers: minutes instead of seconds.

    The layers are found by themselves, ours and torch.nn's, wherever they are. A measure that the data do not allow,
    because the sequences are too short or the model calls a layer step by step, is left out, and the diagnosis says so.
    The model runs once, in eval mode; nothing of it is changed, and no random numbers are drawn from torch's. Torch's
    operations run on one thread meanwhile: they are small, and two threads on a busy machine are many times slower."""
    views = find_layers(model)
    _check_weights(model)
    with one_thread():
        return _diagnosed(model, views, THOROUGH if thorough else QUICK, args, kwargs, updates)


def _diagnosed(
    model: nn.Module,
    views: list[LayerView],
    limits: Limits,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    updates: int | None,
) -> Diagnosis:
    calls: dict[str, list[LayerInput]] = {}
    if args or kwargs:
        with torch.random.fork_rng():
            calls = layer_calls(model, *args, **kwargs)
    found: list[LayerDiagnosis] = []
    costs = {cost.layer: cost for cost in layer_costs(model)}
    for owner in dict.fromkeys(view.owner for view in views):
        own = [view for view in views if view.owner == owner]
        heard, given = calls.get(owner, []), None
        if len(heard) == 1:
            _check_input(own[0].name, heard[0].x)
            given = chosen_sequences(own[0], heard[0], limits.sequences)
        missing = "it needs data: diagnose(model, batch)"
        if args or kwargs:
            missing = f"it needs one call of an RNN, GRU or LSTM, with a whole sequence, got {len(heard)}"
        measured = measure_layers(own, [costs[view.name] for view in own], given, limits, missing)
        count = sequences_in(own[0], heard[0]) if given is not None else 0
        found += [replace(one, given=count, updates=updates) for one in measured]
    return Diagnosis(type(model).__name__, tuple(found))


def _check_weights(model: nn.Module) -> None:
    for owner, module in recurrent_modules(model):
        for name, parameter in module.named_parameters():
            values = torch.view_as_real(parameter) if parameter.is_complex() else parameter
            if not bool(values.isfinite().all()):
                where = f"{owner}.{name}".lstrip(".")
                raise ValueError(f"expected finite weights, got NaN or infinity in {where}")


def _check_input(name: str, x: Tensor) -> None:
    if x.is_floating_point() and not bool(x.isfinite().all()):
        raise ValueError(f"expected finite numbers in what {name} reads, got NaN or infinity")
