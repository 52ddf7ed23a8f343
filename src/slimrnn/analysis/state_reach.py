"""‖∂s_T/∂s_t‖ of one recurrent layer by vector-Jacobian products.

Shape suffixes: T time, B batch, I input width, S real numbers of a state, V vectors that are carried back, K lags.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice
from slimrnn._fields import from_pairs, pairs_flat
from slimrnn.analysis._probes import ROWS, check_lags, joined, log_norms, vectors_for
from slimrnn.analysis.layers import LayerView, frozen, one_layer
from slimrnn.analysis.reach import Array, Reach
from slimrnn.cells.base import State
from slimrnn.layers import RecurrentLayer
from slimrnn.layers.stack import States


def state_reach(
    layer: LayerView | nn.Module,
    x: Tensor,
    hx: States | None = None,
    *,
    lengths: Tensor | Sequence[int] | None = None,
    part: str = "state",
    lags: int | None = None,
    probes: int | None = None,
    spectral: bool = True,
    seed: int = 0,
) -> Reach:
    """‖∂s_T/∂s_t‖ for t = T, T − 1, ..., T − lags (by default to the state before the first step) of one layer while
    its stack reads x from the state hx, both as the stack takes them.

    part -- "state": s is all that the layer carries: h; of an LSTM h and c; with delays or a skip the whole line of the
    last states. "h": ∂h_T/∂h_t of the newest h alone, the rest of the state at t held fixed; of an LSTM "c" likewise. A
    complex number counts as two real ones. A layer's inputs are held fixed, which in a stack makes no difference: no
    layer below depends on it. Of two directions each is measured alone, in its own order of time.
    probes -- None: exact, S vector-Jacobian products per step for a state of S numbers, the spectral norm too (unless
    `spectral` is False). A number m: an estimate from m random vectors v of ±1, mean ‖vᵀJ‖², whose expectation is
    ‖J‖_F². Its relative standard error is at most √(2/m); `relative_error` has the observed one.

    In float64, without dropout. The memory is that of one step, of √T states and of the result: states in between are
    computed again."""
    view = one_layer(layer)
    check_choice("part", part, ["state", "h", "c"] if view.kind == "lstm" else ["state", "h"])
    x_TBI, start, ragged = view.reads(x, hx, lengths)
    longest = check_lags(lags, len(x_TBI), probes)
    core = frozen(view.core)
    chosen = _columns(core, part, x_TBI.device)
    carried = vectors_for(chosen, probes, seed)
    at_once = 1 if ragged is not None else max(1, ROWS // len(carried))
    measured = []
    for first in range(0, x_TBI.shape[1], at_once):
        rows = slice(first, first + at_once)
        steps = len(x_TBI) if ragged is None else int(ragged[first])
        back = _backwards(core, x_TBI[:steps, rows], tuple(some[rows] for some in start))
        measured.append(_carry_back(core, back, carried, chosen, longest, probes is None, spectral))
    frobenius, largest, error = joined(measured, longest + 1)
    return Reach(
        layer=view.name,
        of={"state": "∂s_T/∂s_t", "h": "∂h_T/∂h_t", "c": "∂c_T/∂c_t"}[part],
        lags=np.arange(longest + 1),
        log_frobenius=frobenius,
        log_spectral=largest if probes is None and spectral else None,
        probes=probes,
        relative_error=None if probes is None else error,
    )


def _carry_back(
    core: RecurrentLayer,
    steps: Iterator[tuple[Tensor, State]],
    carried_VS: Tensor,
    chosen_S: Tensor,
    longest: int,
    exact: bool,
    spectral: bool,
) -> tuple[Array, Array, Array]:
    """(ln ‖J‖_F, ln ‖J‖₂, relative error), (K, B) each, for steps from the last to the first."""
    rows_VBS, log_scale_B = carried_VS.unsqueeze(1), torch.zeros(1, dtype=torch.float64, device=carried_VS.device)
    found = [log_norms(rows_VBS[..., chosen_S], log_scale_B, exact, spectral)]
    for x_BI, before in islice(steps, longest):
        rows_VBS = _one_step_back(core, x_BI, before, rows_VBS.expand(-1, len(x_BI), -1))
        size_B = rows_VBS.abs().amax((0, 2))
        if not bool(size_B.isfinite().all()):
            raise ValueError("expected finite gradients, got NaN or infinity")
        size_B = torch.where(size_B > 0, size_B, 1.0)
        rows_VBS, log_scale_B = rows_VBS / size_B.unsqueeze(-1), log_scale_B + size_B.log()
        found.append(log_norms(rows_VBS[..., chosen_S], log_scale_B, exact, spectral))
    found[0] = tuple(values.expand_as(log_scale_B) for values in found[0])
    frobenius, largest, error = (torch.stack(values).cpu().numpy() for values in zip(*found, strict=True))
    return frobenius, largest, error


def _one_step_back(core: RecurrentLayer, x_BI: Tensor, before: State, rows_VBS: Tensor) -> Tensor:
    """vᵀ ∂s_t/∂s_{t−1} for every v: each of them has a copy of the step, so that they are one batch."""
    count = len(rows_VBS)
    copies = _packed(before).repeat(count, 1).requires_grad_()
    after = _packed(core.step(x_BI.repeat(count, 1), _unpacked(copies, before)))
    (back,) = torch.autograd.grad(after, copies, rows_VBS.flatten(0, 1))
    return back.view_as(rows_VBS)


def _backwards(core: RecurrentLayer, x_TBI: Tensor, start: State) -> Iterator[tuple[Tensor, State]]:
    """(x_t, state before it) from the last step to the first. Only the states between segments of √T steps are kept,
    and those within a segment while it is looked at."""
    segments = x_TBI.split(max(1, math.isqrt(len(x_TBI))))
    between = [start]
    for segment in segments:
        between.append(_run(core, segment, between[-1])[-1])
    if not all(bool(part.isfinite().all()) for part in between[-1]):
        raise ValueError(f"expected states that stay finite over {len(x_TBI)} steps, got NaN or infinity")
    for segment, state in zip(reversed(segments), reversed(between[:-1]), strict=True):
        yield from zip(reversed(segment.unbind(0)), reversed(_run(core, segment, state)[:-1]), strict=True)


@torch.no_grad()
def _run(core: RecurrentLayer, x_TBI: Tensor, state: State) -> list[State]:
    """The states before the first step and after each."""
    states = [state]
    for x_BI in x_TBI.unbind(0):
        states.append(core.step(x_BI, states[-1]))
    return states


def _columns(core: RecurrentLayer, part: str, device: torch.device) -> Tensor:
    """Which of a packed state's numbers belong to the part, (S) true or false."""
    copies = 2 if core.cell.complex else 1
    width, line = core.cell.hidden_size * copies, core.state_size * copies
    chosen = torch.full((core.cell.states * line,), part == "state", device=device)
    if part != "state":
        first = 0 if part == "h" else line
        chosen[first : first + width] = True
    return chosen


def _packed(state: State) -> Tensor:
    """(B, S) real numbers."""
    return torch.cat([pairs_flat(part) for part in state], -1)


def _unpacked(packed_BS: Tensor, like: State) -> State:
    parts = packed_BS.chunk(len(like), -1)
    return tuple(from_pairs(part) for part in parts) if like[0].is_complex() else parts
