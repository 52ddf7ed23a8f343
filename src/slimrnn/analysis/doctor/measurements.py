"""Runs the measures on the layers of one stack; what the data do not allow is left out with a reason.

Shape suffixes: T time, B batch, S width of a state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.doctor.limits import Limits
from slimrnn.analysis.gradients.input_reach import input_reach
from slimrnn.analysis.gradients.reach import Reach
from slimrnn.analysis.gradients.state_reach import state_reach
from slimrnn.analysis.matrices.spectrum import spectra
from slimrnn.analysis.memory.capacity import Capacity, memory_capacity
from slimrnn.analysis.memory.gates import GateActivity, activities
from slimrnn.analysis.memory.memory_range import SHORTEST, memory_range
from slimrnn.analysis.model.costs import LayerCost
from slimrnn.analysis.model.layer_inputs import LayerInput
from slimrnn.analysis.model.layers import LayerView, frozen
from slimrnn.analysis.model.trajectory import run
from slimrnn.analysis.time_series.autocorrelation import autocorrelation_norms
from slimrnn.analysis.time_series.convergence import LEAST_STEPS, convergence
from slimrnn.analysis.time_series.long_memory import local_whittle
from slimrnn.analysis.time_series.series import Array

WARM_UP = 0.25  # of a sequence, left out where states have to be stationary
RESTING = 1e-6  # a step smaller than this share of the whole way is none
CAPACITY_LAGS = 100  # at most; the sequences are twice as long
NEEDS_DATA = ("reach", "gates", "memory range", "dependence")


def measure_layers(
    views: Sequence[LayerView], costs: Sequence[LayerCost], given: LayerInput | None, limits: Limits, missing: str
) -> list[LayerDiagnosis]:
    """The layers of one stack, which are measured on one input; `missing` says why there is none."""
    found = [LayerDiagnosis(view, 0, 0, tuple(spectra(view)), cost) for view, cost in zip(views, costs, strict=True)]
    stack = views[0].stack
    if given is None or stack is None:
        return [replace(one, left_out=dict.fromkeys(NEEDS_DATA, missing) | _unknown(one.view)) for one in found]
    known = all(view.kind != "other" for view in views)
    try:
        trajectories = run(stack, given.x, given.lengths, given.hx)
        gates = activities(trajectories) if known else []
    except ValueError as error:  # the inputs are finite, but the states are not
        return [replace(one, overflows=True, left_out=dict.fromkeys(NEEDS_DATA, str(error))) for one in found]
    with ThreadPoolExecutor(1) as beside:  # numpy's measures, while torch's go on: they do not wait for each other
        pending = _measure_gradients(found, gates, given, limits, beside)
        _add_ranges(found, given, _size(views[0], given)[2])
        _add_capacity(found, given, limits)
        return [replace(one, **dependence()) for one, dependence in zip(found, pending, strict=True)]


def _measure_gradients(
    found: list[LayerDiagnosis], gates: Sequence[GateActivity], given: LayerInput, limits: Limits, beside: Executor
) -> list[Callable[[], dict[str, Any]]]:
    """Layer by layer; what it returns waits for the measures of dependence."""
    pending = []
    steps, sequences, _ = _size(found[0].view, given)
    for place, view in enumerate([one.view for one in found]):
        left_out = _unknown(view)
        pending.append(_dependence(view, given, steps, limits, left_out, beside))
        lags = min(limits.lags, steps - 1)
        if not lags:
            left_out["reach"] = "it needs sequences of at least 2 steps, got 1"
        found[place] = replace(
            found[place],
            steps=steps,
            sequences=sequences,
            reach=_reach(view, given, limits, lags) if lags else None,
            input_reach=_input_reach(view, given, limits, lags) if lags else None,
            gates=tuple(gate for gate in gates if gate.core == place),
            left_out=left_out,
        )
    return pending


def _unknown(view: LayerView) -> dict[str, str]:
    """What has to know the cell."""
    if view.kind != "other":
        return {}
    cell = type(view.core.cell).__name__
    return {
        "gates": f"it needs a cell of slimrnn, got {cell}, of which it is not known what its gates do",
        "theorem 1.1": f"it is about RNN, GRU and LSTM, got {cell}; the decay of the state is measured all the same",
    }


def chosen_sequences(view: LayerView, given: LayerInput, most: int) -> LayerInput:
    """Some of the batch: the first, but of a ragged one those that are long enough for all measures, if there are."""
    batch_axis = 0 if view.stack is not None and view.stack.batch_first else 1
    if given.x.dim() == 2:
        return given
    rows = torch.arange(given.x.shape[batch_axis])
    if given.lengths is not None:
        long = torch.as_tensor(given.lengths).cpu() >= SHORTEST
        rows = rows[long] if bool(long.any()) else rows
    rows = rows[:most]

    def of_state(part: Tensor) -> Tensor:
        return part[:, rows.to(part.device)]

    hx: Any = given.hx
    if hx is not None:
        hx = of_state(hx) if isinstance(hx, Tensor) else tuple(of_state(part) for part in hx)
    x = given.x.index_select(batch_axis, rows.to(given.x.device))
    lengths = None if given.lengths is None else torch.as_tensor(given.lengths).cpu()[rows]
    return LayerInput(x, hx, lengths)


def sequences_in(view: LayerView, given: LayerInput) -> int:
    return _size(view, given)[1]


def _size(view: LayerView, given: LayerInput) -> tuple[int, int, int]:
    """The most steps, the number of sequences, and the fewest steps."""
    if given.x.dim() == 2:
        return len(given.x), 1, len(given.x)
    steps, sequences = given.x.shape[:2]
    if view.stack is not None and view.stack.batch_first:
        steps, sequences = sequences, steps
    if given.lengths is None:
        return steps, sequences, steps
    return int(given.lengths.max()), sequences, int(given.lengths.min())


def _probes(view: LayerView, limits: Limits) -> int | None:
    """None, which is exact, for small states."""
    size = view.core.state_size * view.core.cell.states * (2 if view.complex else 1)
    return None if size <= limits.exact else limits.probes


def _reach(view: LayerView, given: LayerInput, limits: Limits, lags: int) -> Reach:
    return state_reach(
        view, given.x, given.hx, lengths=given.lengths, lags=lags, probes=_probes(view, limits), spectral=False
    )


def _input_reach(view: LayerView, given: LayerInput, limits: Limits, lags: int) -> Reach:
    return input_reach(
        view, given.x, given.hx, lengths=given.lengths, lags=lags, probes=_probes(view, limits), spectral=False
    )


def _dependence(
    view: LayerView, given: LayerInput, steps: int, limits: Limits, left_out: dict[str, str], beside: Executor
) -> Callable[[], dict[str, Any]]:
    """Of the states of the longest sequence, after a warm-up."""
    series = _series(view, given, steps, limits, left_out)
    if series is None:
        return dict

    def measure() -> dict[str, Any]:
        return {
            "autocorrelation": autocorrelation_norms(series, resamples=limits.bootstraps),
            "convergence": convergence(series),
            "long_memory": local_whittle(series),
        }

    return beside.submit(measure).result


def _series(view: LayerView, given: LayerInput, steps: int, limits: Limits, left_out: dict[str, str]) -> Array | None:
    first = int(WARM_UP * steps)
    if steps - first < LEAST_STEPS:
        least = -(-LEAST_STEPS * 4 // 3)
        left_out["dependence"] = f"it needs a sequence of at least {least} steps, got {steps}"
        return None
    series = _states(view, given)[first:]
    moving = np.ptp(series, axis=0) > 1e-9 * np.abs(series).max(0)
    if not moving.any():
        left_out["dependence"] = "it needs states that change, got constant ones"
        return None
    series = series[:, moving]
    series = series[:, np.linspace(0, series.shape[1] - 1, min(series.shape[1], limits.series)).astype(int)]
    if np.median(np.abs(np.diff(series, axis=0)).max(1)) < RESTING * np.ptp(series, axis=0).max():
        left_out["dependence"] = "it needs states that vary all the time, got ones that rest more often than not"
        return None
    return series


def _states(view: LayerView, given: LayerInput) -> Array:
    """h of the longest sequence (T, H), or its real and imaginary parts."""
    x_TBI, start, lengths = view.reads(given.x, given.hx, given.lengths)
    which = 0 if lengths is None else int(lengths.argmax())
    end = len(x_TBI) if lengths is None else int(lengths[which])
    with torch.no_grad():
        h_TBS, _ = frozen(view.core)(x_TBI[:end, which : which + 1], tuple(part[which : which + 1] for part in start))
    return np.asarray(h_TBS[:, 0].cpu().numpy())


def _add_ranges(found: list[LayerDiagnosis], given: LayerInput, shortest: int) -> None:
    if shortest < SHORTEST:
        for one in found:
            one.left_out["memory range"] = f"it needs sequences of at least {SHORTEST} steps, got {shortest}"
        return
    stack = found[0].view.stack
    assert stack is not None
    for verdict in memory_range(stack, given.x, given.lengths, given.hx):
        found[verdict.core] = replace(found[verdict.core], memory_range=verdict)


def _add_capacity(found: list[LayerDiagnosis], given: LayerInput, limits: Limits) -> None:
    """Of the whole stack, so it stands with its last layer."""
    last = found[-1]
    stack = last.view.stack
    assert stack is not None
    features = last.view.hidden_size * (2 if last.view.complex else 1) * stack.num_directions * len(stack.delays)
    if stack.bidirectional:
        last.left_out["capacity"] = "it needs layers of one direction, got two"
    elif features > limits.capacity_features:
        last.left_out["capacity"] = f"thorough=True measures it of more than {limits.capacity_features} outputs"
    elif last.steps < 4:
        last.left_out["capacity"] = f"it needs sequences of at least 4 steps, got {last.steps}"
    else:
        lags = min(CAPACITY_LAGS, last.steps // 2)
        try:
            found[-1] = replace(last, capacity=_capacity(last, given, limits, lags))
        except ValueError as error:  # outputs that do not vary, because all units are off
            last.left_out["capacity"] = str(error)


def _capacity(last: LayerDiagnosis, given: LayerInput, limits: Limits, lags: int) -> Capacity:
    """From random inputs of the kind and size of the data, in sequences twice as long as the lags: without an end, a
    net that forgets nothing would have an infinite past to tell apart."""
    stack, x = last.view.stack, given.x
    assert stack is not None
    symbols = x.shape[-1] > 1 and bool((((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)).all())
    shape = (2 * lags, -(-limits.capacity_steps // lags), stack.input_size)
    generator = np.random.default_rng(0)
    if symbols:
        drawn = np.eye(stack.input_size)[generator.integers(stack.input_size, size=shape[:2])]
    else:
        drawn = generator.uniform(-1, 1, shape) * (float(x.abs().max()) or 1.0)
    inputs = torch.from_numpy(drawn).to(x)
    inputs = inputs.transpose(0, 1) if stack.batch_first else inputs
    return memory_capacity(stack, inputs, lags=lags, washout=lags, symbols=symbols)
