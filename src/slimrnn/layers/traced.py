"""The traced steps of layers. torch.compile takes them as constants, by the number of the layer."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import torch

from slimrnn.tracing import Around, Traced, explain_once, find

if TYPE_CHECKING:
    from slimrnn.layers.recurrent_layer import RecurrentLayer

_layers: WeakValueDictionary[int, RecurrentLayer] = WeakValueDictionary()
_numbers = count()


def numbered(layer: RecurrentLayer) -> int:
    """A number for the layer, and for no other of this process."""
    number = next(_numbers)
    _layers[number] = layer
    return number


def _steps_of(number: int) -> list[Traced] | None:
    """What the native core runs for each transition of a layer; None where it cannot, which is told once."""
    layer = _layers[number]
    around = Around(layer.leak is not None, layer.zoneout, layer.zoneout is not None and layer.training)
    steps = []
    for transition in layer.transitions:
        step = find(transition.cell, around)
        if isinstance(step, str):
            explain_once(transition.cell, step)
            return None
        steps.append(step)
    return steps if len({step.native.text for step in steps}) == 1 else None


steps_of: Any = torch.compiler.assume_constant_result(_steps_of)  # type: ignore[no-untyped-call]
