"""‖∂s_T/∂s_t‖ of one recurrent layer by vector-Jacobian products.

Shape suffixes: T time, B batch, I input width, S real numbers of a state, V vectors that are carried back, K lags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice
from slimrnn._fields import from_pairs, pairs_flat
from slimrnn.analysis.gradients._probes import (
    ROWS,
    NormTable,
    brought_back,
    carried_back,
    check_lags,
    reach_of,
    segment_length,
    states_between,
    vectors_for,
)
from slimrnn.analysis.gradients.reach import Reach
from slimrnn.analysis.model.layers import LayerView, frozen, one_layer
from slimrnn.analysis.model.linear_steps import Linearizer, can_serve
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

    In float64, without dropout. The sequence is cut into segments, which are run again one by one on the way back, so
    that the memory does not grow with T beyond the states between segments and the result."""
    view = one_layer(layer)
    check_choice("part", part, ["state", "h", "c"] if view.kind == "lstm" else ["state", "h"])
    x_TBI, start, ragged = view.reads(x, hx, lengths)
    longest = check_lags(lags, len(x_TBI) if ragged is None else int(ragged.max()), probes)
    core = frozen(view.core)
    chosen = _columns(core, part, x_TBI.device)
    carried = vectors_for(chosen, probes, seed)
    at_once = 1 if ragged is not None else max(1, ROWS // len(carried))
    tables = []
    for first in range(0, x_TBI.shape[1], at_once):
        rows = slice(first, first + at_once)
        steps = len(x_TBI) if ragged is None else int(ragged[first])
        inputs, begin = x_TBI[:steps, rows], tuple(some[rows] for some in start)
        tables.append(NormTable(longest + 1, inputs.shape[1], probes is None, spectral))
        _carry_back(core, _segments(core, inputs, begin, len(carried)), carried, chosen, tables[-1])
    of = {"state": "∂s_T/∂s_t", "h": "∂h_T/∂h_t", "c": "∂c_T/∂c_t"}[part]
    return reach_of(view.name, of, tables, probes)


def _carry_back(
    core: RecurrentLayer,
    segments: Iterable[tuple[Tensor, State]],
    carried_VS: Tensor,
    chosen_S: Tensor,
    table: NormTable,
) -> None:
    """The table's norms, by segments from the last to the first."""
    batch = table.values.shape[-1]
    rows_VBS, log_scale_B = carried_VS.unsqueeze(1).expand(-1, batch, -1), carried_VS.new_zeros(batch)
    columns = slice(None) if bool(chosen_S.all()) else chosen_S  # no copy of a whole
    table.add(rows_VBS[None, ..., columns], log_scale_B)
    linearizer = Linearizer(core) if core.line == 1 and can_serve(core) else None
    for x_TBI, before in segments:
        if linearizer is None:
            back_TVBS = _through_copies(core, x_TBI, before, rows_VBS)
        else:
            back_TVBS = _through(linearizer, x_TBI, before, rows_VBS)
        table.add(back_TVBS[..., columns], log_scale_B)
        if table.full:
            break
        rows_VBS, log_scale_B = brought_back(back_TVBS[-1], log_scale_B)


def _through(linearizer: Linearizer, x_TBI: Tensor, before: State, rows_VBS: Tensor) -> Tensor:
    """vᵀ ∂s/∂s_t for the rows v, where s is the state after a segment, from its last step back to the state before
    it."""
    steps, _, _ = linearizer.along(x_TBI, before)
    back_TVBS = rows_VBS.new_empty(len(x_TBI), *rows_VBS.shape)
    d_state = _unpacked(rows_VBS, before)
    for place, t in enumerate(reversed(range(len(x_TBI)))):
        d_state = steps.back(t, d_state)
        back_TVBS[place] = _packed(d_state)
    return back_TVBS


def _through_copies(core: RecurrentLayer, x_TBI: Tensor, before: State, rows_VBS: Tensor) -> Tensor:
    """The same for any step. Every v has a copy of the segment, so that they are one batch."""
    count = len(rows_VBS)
    states = [_packed(before).repeat(count, 1).requires_grad_()]
    given_TB = core.input_product(x_TBI) if core.line == 1 else x_TBI
    for given_B in given_TB.unbind(0):
        copies = given_B.repeat(count, *(1 for _ in given_B.shape[1:]))
        states.append(_packed(_step(core, copies, _unpacked(states[-1], before))))
    gradients = carried_back([rows_VBS.flatten(0, 1)], states[-1:], states[:-1])
    stacked: Tensor = torch.stack(gradients[::-1])
    return stacked.view(-1, *rows_VBS.shape)


def _step(core: RecurrentLayer, given_B: Tensor, state: State) -> State:
    """One step from an input, or from its product: a scan, where that is all there is to a step, since a scan may be
    native."""
    if core.line > 1:
        return core.step(given_B, state)
    return core.scan(None, given_B.unsqueeze(0), state)[1]


def _segments(core: RecurrentLayer, x_TBI: Tensor, start: State, vectors: int) -> Iterator[tuple[Tensor, State]]:
    """(inputs, state before them) of segments so short that the vectors can be carried back through one, the last one
    first. Only the states between segments are kept."""
    width = len(core.cell.gates) * core.cell.hidden_size * len(core.transitions) + len(start) * core.state_size
    segments = x_TBI.split(segment_length(len(x_TBI), vectors * x_TBI.shape[1], width))
    between, _ = states_between(core, segments, start)
    return zip(reversed(segments), reversed(between), strict=True)


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
    """(..., S) real numbers."""
    return torch.cat([pairs_flat(part) for part in state], -1)


def _unpacked(packed: Tensor, like: State) -> State:
    parts = packed.chunk(len(like), -1)
    return tuple(from_pairs(part) for part in parts) if like[0].is_complex() else parts
