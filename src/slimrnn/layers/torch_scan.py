"""A layer's scan by torch's own fused operators, which are cuDNN's on a GPU: for the layers that torch has.

Shape suffixes: T time, B batch, I input width, G gates, H hidden units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from slimrnn._fields import some_parameter
from slimrnn.cells import ElmanCell, GRUCell, LSTMCell
from slimrnn.cells.base import State
from slimrnn.layers.delays import turned
from slimrnn.ops.operators import transformed
from slimrnn.structures.dense import Dense

if TYPE_CHECKING:
    from slimrnn.layers.recurrent_layer import RecurrentLayer

PREFERRED_ON = frozenset({"cuda"})  # kinds of devices where "auto" chooses it


def obstacle(layer: RecurrentLayer) -> str | None:
    """What torch's operators lack of a layer, as it is written; None where they have all of it."""
    of_cell = _obstacle_in_cell(layer)
    if of_cell is not None:
        return of_cell
    for name, map in (("structure", layer.recurrent), ("input_structure", layer.input)):
        if type(map.spec) is not Dense:  # the map's own type may be that of a parametrization
            return f"{name}={map.spec!r}"
    options = (
        ("transition_depth", len(layer.transitions), 1),
        ("leak", None if layer.leak is None else layer.leak.spec, None),
        ("delays", layer.delay, 1),
        ("skip", layer.skip, None),
        ("zoneout", layer.zoneout, None),
        ("recurrent_dropout", layer.recurrent_dropout, 0),
        ("weight_drop", layer.weight_drop, 0),
    )
    return next((f"{name}={value}" for name, value, default in options if value != default), None)


def _obstacle_in_cell(layer: RecurrentLayer) -> str | None:
    cell = layer.cell
    if getattr(cell.step, "__func__", None) not in (ElmanCell.step, GRUCell.step, LSTMCell.step):
        return type(cell).__name__
    if isinstance(cell, ElmanCell) and cell.nonlinearity not in ("tanh", "relu"):
        return f"nonlinearity={cell.nonlinearity!r}"
    if isinstance(cell, GRUCell) and cell.reset != "after":
        return f"reset={cell.reset!r}"
    if isinstance(cell, LSTMCell) and cell.peephole is not None:
        return "peephole=True"
    return None


def check_layer(layer: RecurrentLayer) -> None:
    """ValueError for a layer that torch's operators do not have."""
    reason = obstacle(layer)
    if reason is not None:
        raise ValueError(
            "expected an RNN (tanh or relu), GRU or LSTM as torch has it for backend='torch', "
            f"got {reason}: choose backend='auto'"
        )


def is_preferred(layer: RecurrentLayer) -> bool:
    """Whether "auto" stands for these operators: on a GPU, where there is no native core."""
    return some_parameter(layer).device.type in PREFERRED_ON and obstacle(layer) is None


def can_serve(x: Tensor) -> bool:
    """Whether the operators can run on these inputs here and now."""
    return bool(x.numel()) and not transformed()


def run(
    layer: RecurrentLayer, x_TBI: Tensor, state: State, lengths_B: Tensor | None, reverse: bool
) -> tuple[Tensor, State]:
    """Outputs (T, B, H) and the last state."""
    x_TBI = turned(x_TBI, lengths_B) if reverse else x_TBI
    if lengths_B is None:
        output, *last = _call(layer, (x_TBI,), state)
    else:
        output, last = _run_ragged(layer, x_TBI, state, lengths_B)
    return turned(output, lengths_B) if reverse else output, tuple(last)


def _run_ragged(layer: RecurrentLayer, x_TBI: Tensor, state: State, lengths_B: Tensor) -> tuple[Tensor, list[Tensor]]:
    """By way of a packed sequence. One of no steps (a segment of a short sequence) is run for one, and that dropped."""
    packed = pack_padded_sequence(x_TBI, lengths_B.clamp_min(1).cpu(), enforce_sorted=False)
    order, back = packed.sorted_indices, packed.unsorted_indices
    assert order is not None
    assert back is not None
    rows, *last = _call(layer, packed[:2], tuple(part.index_select(0, order) for part in state))
    output, _ = pad_packed_sequence(PackedSequence(rows, packed.batch_sizes, order, back), total_length=len(x_TBI))
    begun = (lengths_B > 0).unsqueeze(1)
    kept = [torch.where(begun, part.index_select(0, back), start) for part, start in zip(last, state, strict=True)]
    return torch.where(begun, output, output.new_zeros(())), kept


def _call(layer: RecurrentLayer, given: tuple[Tensor, ...], state: State) -> tuple[Tensor, ...]:
    """Over x (T, B, I), or over the rows and the batch sizes of a packed sequence."""
    parts = [part.unsqueeze(0).contiguous() for part in state]
    start = parts if len(parts) > 1 else parts[0]
    # "Training" keeps what backward needs: a gradient may be asked of a layer in eval(), too.
    training, layers, dropout, bidirectional, batch_first = torch.is_grad_enabled(), 1, 0.0, False, False
    options = [layer.cell.input_bias() is not None, layers, dropout, training, bidirectional]
    options += [batch_first] if len(given) == 1 else []
    output, *last = _operator(layer)(*given, start, _weights(layer), *options)
    return output, *(part.squeeze(0) for part in last)


def _operator(layer: RecurrentLayer) -> Callable[..., tuple[Tensor, ...]]:
    cell = layer.cell
    if isinstance(cell, ElmanCell):
        return {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu}[cell.nonlinearity]
    return torch.lstm if isinstance(cell, LSTMCell) else torch.gru


def _weights(layer: RecurrentLayer) -> list[Tensor]:
    """W_ih, W_hh and two biases, of which ours are the first, but for the GRU's that is reset.

    On a GPU in one piece of memory, as cuDNN wants them."""
    cell, (u,), (w,) = layer.cell, layer.input.prepare(), layer.recurrent.prepare()
    found = [u.flatten(0, 1), w.flatten(0, 1)]
    first = cell.input_bias()
    if first is not None:
        second = torch.zeros_like(first)
        if isinstance(cell, GRUCell) and cell.recurrent_bias is not None:
            second = torch.cat([second[:2], cell.recurrent_bias.unsqueeze(0)])
        found += [first.flatten(), second.flatten()]
    if u.device.type != "cuda":
        return found
    pieces = torch.cat([t.flatten() for t in found]).split([t.numel() for t in found])
    return [piece.view_as(t) for piece, t in zip(pieces, found, strict=True)]
