"""Recurrence over longer delays, made of scans over single steps.

A layer whose units see only step t − d is d interleaved sequences (lecture, "Removing Connections"; the factorized
paper's temporal dilations); added connections from t − d (lecture, "Skip Connections Through Time") are an input, known
d steps ahead. Its state is a line of the last d states, the newest first.

Shape suffixes: T time, B batch, I input width, H hidden units, D delay.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from slimrnn.cells.base import State
from slimrnn.ops.reference import check_length_is_fixed

Scan = Callable[[Tensor, State, Tensor | None], tuple[Tensor, State]]  # inputs, states, lengths -> outputs, states


def push(line: Tensor, new_BH: Tensor) -> Tensor:
    """The line (B, D·H) after one more state."""
    return torch.cat([new_BH, line[..., : line.shape[-1] - new_BH.shape[-1]]], -1)


def newest_alone(line: Tensor, new_BH: Tensor) -> Tensor:
    """A line of which only the newest state is ever seen, the LSTM's c beside a skip: the others are zero."""
    return torch.cat([new_BH, torch.zeros_like(line[..., new_BH.shape[-1] :])], -1)


def oldest(line: Tensor, width: int) -> Tensor:
    """What a connection of delay D sees."""
    return line[..., line.shape[-1] - width :]


def turned(x_TB: Tensor, lengths_B: Tensor | None) -> Tensor:
    """Every sequence from its own end to its start; padding stays where it is."""
    if lengths_B is None:
        return x_TB.flip(0)
    steps_T1 = torch.arange(x_TB.shape[0], device=x_TB.device).unsqueeze(1)
    order = torch.where(steps_T1 < lengths_B, lengths_B - 1 - steps_T1, steps_T1)
    return x_TB[order, torch.arange(x_TB.shape[1], device=x_TB.device)]


def interleaved(scan: Scan, delay: int, x_TBI: Tensor, state: State, lengths_B: Tensor | None) -> tuple[Tensor, State]:
    """h_t = cell(x_t, h_{t−D}): lane j has the steps j, j + D, j + 2D, ..., and the lanes are one batch."""
    time, batch = x_TBI.shape[:2]
    any_length = torch.compiler.is_exporting()  # where nothing may depend on it, and steps must be more than one
    steps = time // delay + 2 if any_length else (time + delay - 1) // delay
    short = steps * delay - time
    if any_length:
        starts_S1 = delay * torch.arange(steps, device=x_TBI.device).unsqueeze(1)
        lanes = x_TBI[(starts_S1 + torch.arange(delay, device=x_TBI.device)).clamp_max(time - 1)].flatten(1, 2)
    else:
        padded = functional.pad(x_TBI, (0, 0, 0, 0, 0, short)) if short else x_TBI
        lanes = padded.reshape(steps, delay * batch, x_TBI.shape[-1])
    whole_B = torch.full((batch,), time, device=x_TBI.device) if lengths_B is None else lengths_B
    lane_D1 = torch.arange(delay, device=x_TBI.device).unsqueeze(1)
    ragged = None
    if any_length or short or lengths_B is not None:
        ragged = ((whole_B - lane_D1 + delay - 1) // delay).flatten()
    lines = [part.unflatten(-1, (delay, -1)).transpose(0, 1).flip(0).flatten(0, 1) for part in state]
    output, last = scan(lanes, tuple(lines), ragged)
    if any_length:
        steps_T = torch.arange(time, device=x_TBI.device)
        output = output.unflatten(1, (delay, batch))[steps_T // delay, steps_T % delay]
    else:
        output = output.reshape(steps * delay, batch, output.shape[-1])[:time]
    newest_DB = (whole_B - 1 - lane_D1) % delay  # the lanes of the last D steps
    sequence_B = torch.arange(batch, device=x_TBI.device)
    ends = (part.unflatten(0, (delay, batch))[newest_DB, sequence_B] for part in last)
    return output, tuple(part.transpose(0, 1).flatten(1) for part in ends)


def with_skips(
    scan: Callable[[Tensor, Tensor, State, Tensor | None], tuple[Tensor, State]],
    delay: int,
    wx_TBGH: Tensor,
    state: State,
    lengths_B: Tensor | None,
) -> tuple[Tensor, State]:
    """h_t = cell(x_t, h_{t−1}, h_{t−D}) in pieces of D steps: all that a piece sees by its long connections is known.

    `scan` runs the steps of a piece, given their input products, the states (steps, B, H) that their long connections
    see, the state before the piece, and lengths."""
    check_length_is_fixed(wx_TBGH.shape[0])
    before = [part.unflatten(-1, (delay, -1)).transpose(0, 1).flip(0) for part in state]  # (D, B, H), oldest first
    seen, now = [before[0]], tuple(part[-1] for part in before)
    time = len(wx_TBGH)
    for number, piece in enumerate(
        wx_TBGH.split(delay)
    ):  # not sliced: the gradient of a slice is as large as the whole
        count = len(piece)
        lengths = None if lengths_B is None else (lengths_B - number * delay).clamp(0, count)
        before_TBH = seen[-1] if count == delay else seen[-1][:count]
        h_TBH, now = scan(piece, before_TBH, now, lengths)
        seen.append(h_TBH)
    all_TBH = torch.cat(seen)
    batch = all_TBH.shape[1]
    ends_B = torch.full((batch,), time, device=all_TBH.device) if lengths_B is None else lengths_B
    newest_DB = delay + ends_B - 1 - torch.arange(delay, device=all_TBH.device).unsqueeze(1)
    line = all_TBH[newest_DB, torch.arange(batch, device=all_TBH.device)].transpose(0, 1).flatten(1)
    others = (newest_alone(old, new) for old, new in zip(state[1:], now[1:], strict=True))
    return all_TBH[delay:], (line, *others)
