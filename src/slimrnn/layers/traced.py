"""The traced steps of layers. torch.compile takes them as constants, by the number of the layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from slimrnn._fields import some_parameter
from slimrnn._watched import latest
from slimrnn.ops.calls import DTYPES
from slimrnn.ops.library import limits
from slimrnn.structures.base import StructuredMap
from slimrnn.tracing import Around, Traced, explain_once, find
from slimrnn.tracing.dependences import ClassState, is_fixed

if TYPE_CHECKING:
    from slimrnn.layers.recurrent_layer import RecurrentLayer

_layers: WeakValueDictionary[int, RecurrentLayer] = WeakValueDictionary()
_numbers = count()


def numbered(layer: RecurrentLayer) -> int:
    """A number for the layer, and for no other of this process."""
    number = next(_numbers)
    _layers[number] = layer
    return number


def found_steps(layer: RecurrentLayer) -> list[Traced | str]:
    """What the native core runs for each transition, or why it cannot."""
    around = Around(layer.leak is not None, layer.zoneout, layer.zoneout is not None and layer.training)
    return [find(transition.cell, around) for transition in layer.transitions]


def runs_as(layer: RecurrentLayer) -> str:
    """ "compiled", "bytecode", "reference" or "torch"; says nothing, and computes nothing."""
    some = some_parameter(layer)
    if layer.backend == "torch":
        return "torch"
    if layer.backend != "native" or some.device.type != "cpu" or some.dtype not in DTYPES:
        return "reference"
    if layer.weight_drop and layer.training and not takes_dropped_weights(layer):
        return "reference"
    steps, counts = usable(found_steps(layer)), [transition.recurrent.term_count for transition in layer.transitions]
    if steps is None or len(counts) > limits.phases or any(n is None or n > limits.terms for n in counts):
        return "reference"
    return "compiled" if steps[0].native.code >= 0 else "bytecode"


def takes_dropped_weights(layer: RecurrentLayer) -> bool:
    """Whether the core can have matrices some of whose numbers are zero."""
    parts = (part for transition in layer.transitions for part in transition.recurrent.modules())
    return all(part.takes_any_numbers for part in parts if isinstance(part, StructuredMap))


def usable(steps: Sequence[Traced | str]) -> list[Traced] | None:
    """The steps, if the core can run all of them in turns."""
    found = [step for step in steps if isinstance(step, Traced)]
    return found if len(found) == len(steps) and len({step.native.text for step in found}) == 1 else None


def steps_of(number: int) -> list[Traced] | None:
    """What the native core runs for each transition of a layer; None where it cannot, which is told once."""
    layer = _layers[number]
    if torch._C._is_tracing():  # where sizes are no numbers
        return _looked_for(layer)
    kept, change, shapes = _kept.get(layer), latest.change, _shapes(layer)
    if kept is not None and kept.change is change and kept.shapes == shapes and kept.classes.is_same():
        return kept.steps
    found, cells = _looked_for(layer), [transition.cell for transition in layer.transitions]
    if found is not None and all(type(cell) is type(cells[0]) and is_fixed(cell) for cell in cells):
        _kept[layer] = Kept(change, shapes, ClassState(type(cells[0])), found)
    return found


def _looked_for(layer: RecurrentLayer) -> list[Traced] | None:
    steps = found_steps(layer)
    for transition, step in zip(layer.transitions, steps, strict=True):
        if isinstance(step, str):
            explain_once(transition.cell, step)
            break
    return usable(steps)


# What torch.compiler.assume_constant_result does; that would import torch._dynamo, as long as all the rest of slimrnn.
steps_of.__dict__["_dynamo_marked_constant"] = True


class Kept(NamedTuple):
    """The steps of a layer, and when they were found: they hold until some watched module, a tensor of the cells or
    the class of the cells has changed."""

    change: object
    shapes: list[torch.Size | None]
    classes: ClassState
    steps: list[Traced]


_kept: WeakKeyDictionary[RecurrentLayer, Kept] = WeakKeyDictionary()


def _shapes(layer: RecurrentLayer) -> list[torch.Size | None]:
    """Of the cells' tensors, which may be replaced without a word."""
    tables = [table for t in layer.transitions for table in (t.cell._parameters, t.cell._buffers)]
    return [None if tensor is None else tensor.shape for table in tables for tensor in table.values()]
