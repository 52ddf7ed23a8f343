"""Recurrent layers wherever they are in a model, ours and torch.nn's, in one form.

Shape suffixes: T time, B batch, I input width, S width of a state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from slimrnn._fields import field_dtype
from slimrnn.analysis.model.trajectory import as_stack
from slimrnn.cells import Cell, ElmanCell, GRUCell, LSTMCell
from slimrnn.cells.base import State
from slimrnn.layers import OutputRecurrent, RecurrentLayer, RecurrentStack, delays
from slimrnn.layers.group import LayerGroup
from slimrnn.layers.inputs import check_lengths, check_state
from slimrnn.layers.stack import States
from slimrnn.layers.tokens import is_tokens
from slimrnn.ops.reference import valid_steps
from slimrnn.structures.base import Prepared, StructuredMap

KNOWN: dict[str, type[Cell]] = {"rnn": ElmanCell, "gru": GRUCell, "lstm": LSTMCell}
Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True, eq=False)
class LayerView:
    """One layer in one direction, and with several delays one group of its units.

    `core` is the layer itself; of a torch.nn layer it is ours with a copy of the weights, so after an update of these
    look for the layers anew."""

    name: str  #: "encoder.rnn.l1_reverse": where the layers are, and torch's name of the layer there
    owner: str  #: "encoder.rnn", or "" where the model is the recurrent layer itself
    kind: str  #: "rnn", "gru" or "lstm"; "other" for a cell that is none of these, of whose gates nothing is known
    core: RecurrentLayer
    stack: RecurrentStack | None  #: the layers that it belongs to; None for a RecurrentLayer of its own
    index: int = 0  #: of its layer · direction in the stack
    group: int = 0  #: of its delay among the stack's delays
    of_torch: bool = False
    fed_back: bool = False  #: within an OutputRecurrent, whose output comes back as a further input

    @property
    def depth(self) -> int:
        return 0 if self.stack is None else self.index // self.stack.num_directions

    @property
    def reverse(self) -> bool:
        """Does it read the sequence from its end?"""
        return self.stack is not None and self.index % self.stack.num_directions == 1

    @property
    def hidden_size(self) -> int:
        """Units; complex ones, where the state is complex."""
        return self.core.cell.hidden_size

    @property
    def complex(self) -> bool:
        return self.core.cell.complex

    @property
    def structure(self) -> str:
        return repr(self.core.recurrent.spec)

    @property
    def maps(self) -> dict[str, tuple[StructuredMap, int]]:
        """The recurrent matrix of each gate, as (map, number of the gate in it), by its name.

        "u" is that of the update gate. With `transition_depth`, "u.2" acts within the second transition; with `skip`,
        "u.skip" acts on the state so many steps before. With `delays`, all act on the state of that many steps ago."""
        found = {}
        for number, transition in enumerate(self.core.transitions, 1):
            suffix = f".{number}" if number > 1 else ""
            for gate, name in enumerate(self.matrix_names):
                found[name + suffix] = (transition.recurrent, gate)
        if self.core.skipped is not None:
            found.update({f"{name}.skip": (self.core.skipped, gate) for gate, name in enumerate(self.core.cell.gates)})
        return found

    @property
    def matrix_names(self) -> tuple[str, ...]:
        """Those of the gates, "r", "u", "n"; "matrix 0", ... of a cell with more or fewer recurrent matrices."""
        cell = self.core.cell
        if cell.matrices == len(cell.gates):
            return cell.gates
        return tuple(f"matrix {number}" for number in range(cell.matrices))

    def reads(
        self, x: Tensor, hx: States | None = None, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        """What this layer reads when its stack reads x from the state hx, both as the stack takes them: its inputs
        (T, B, I) in the order in which it reads them, its state before the first one, and the lengths. In float64,
        without dropout."""
        if self.fed_back:
            raise ValueError(f"expected a layer that x alone drives, got {self.name}, to which an output comes back")
        stack = None if self.stack is None else frozen(self.stack)
        x = x if stack is None else in_vectors(stack, x, lengths)
        x_TBI = in_steps(x, self.core.input.shape.in_size if stack is None else stack.input_size, self._batch_first)
        ragged = None if lengths is None else check_lengths(lengths, len(x_TBI), x_TBI.shape[1], x_TBI.device)
        if stack is None:
            given = frozen(self.core).initial_state(x_TBI.shape[1]) if hx is None else hx
            return x_TBI, (given,) if isinstance(given, Tensor) else tuple(given), ragged
        with torch.no_grad():
            starts = _starts(stack, x_TBI.shape[1], hx)
            below = _below(stack, x_TBI, starts, ragged, self.depth)
        layer, start = stack.layers[self.index], starts[self.index]
        if isinstance(layer, LayerGroup):
            sizes = [core.state_size for core in layer.cores]
            start = tuple(part.split(sizes, -1)[self.group] for part in start)
        return delays.turned(below, ragged) if self.reverse else below, start, ragged

    @torch.no_grad()
    def states(
        self, x: Tensor, hx: States | None = None, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, ...]:
        """The states before the first step and after every step, (T + 1, B, S) each: h, or h and c, in the order in
        which the layer reads. With delays or a skip, a state is the line of the last ones, the newest first."""
        x_TBI, state, ragged = self.reads(x, hx, lengths)
        core, found = frozen(self.core), [state]
        for t, x_BI in enumerate(x_TBI.unbind(0)):
            new = core.step(x_BI, state)
            if ragged is not None:
                inside = (t < ragged).unsqueeze(-1)
                new = tuple(torch.where(inside, now, before) for now, before in zip(new, state, strict=True))
            state = new
            found.append(state)
        return tuple(torch.stack(parts) for parts in zip(*found, strict=True))

    @property
    def _batch_first(self) -> bool:
        return self.stack is not None and self.stack.batch_first


def find_layers(model: nn.Module) -> list[LayerView]:
    """Every recurrent layer of the model, each depth and direction for itself, in the order of the modules."""
    views = [view for name, module in recurrent_modules(model) for view in _views(name, module)]
    if not views:
        cells = sorted({type(m).__name__ for m in model.modules() if isinstance(m, nn.RNNCellBase)})
        got = f"{type(model).__name__} without one" + (f" (but with {', '.join(cells)})" if cells else "")
        raise ValueError(f"expected a model with an RNN, GRU or LSTM of slimrnn or torch.nn, got {got}")
    return views


def one_layer(layer: LayerView | nn.Module) -> LayerView:
    """The view itself, or the only layer of a model."""
    if isinstance(layer, LayerView):
        return layer
    views = find_layers(layer)
    if len(views) > 1:
        names = ", ".join(view.name for view in views)
        raise ValueError(f"expected one recurrent layer, got {len(views)} ({names}): choose one of find_layers(model)")
    return views[0]


def frozen(module: Module) -> Module:
    """A copy in float64 and eval mode whose parameters need no gradients and whose matrices are prepared once."""
    twin = copy.deepcopy(module).double().eval().requires_grad_(False)
    for part in twin.modules():
        if isinstance(part, StructuredMap):
            part.prepare = _always(part.prepare())  # type: ignore[method-assign]
    return twin


def _always(prepared: Prepared) -> Callable[[], Prepared]:
    return lambda: prepared


@torch.no_grad()
def in_vectors(stack: RecurrentStack, x: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Tensor:
    """Tokens as the vectors that they stand for, whatever stands beyond a sequence's end; anything else as it is."""
    if not stack.takes_tokens or not is_tokens(x):
        return x
    if lengths is not None:
        inside_TB = valid_steps(x.shape[stack.batch_first if x.dim() == 2 else 0], torch.as_tensor(lengths)).squeeze(-1)
        x = x.masked_fill(~(inside_TB.T if stack.batch_first else inside_TB).reshape(x.shape), 0)
    return stack.vectors(x)


def in_steps(x: Tensor, width: int, batch_first: bool) -> Tensor:
    """Inputs in a layer's own form, checked, as (T, B, I) in float64."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(f"expected x to be a tensor of real numbers, got {getattr(x, 'dtype', type(x).__name__)}")
    if x.dim() not in (2, 3) or x.shape[-1] != width or 0 in x.shape:
        raise ValueError(f"expected x of shape (..., {width}), one or two axes before it, got {tuple(x.shape)}")
    if not bool(x.isfinite().all()):
        raise ValueError("expected finite numbers in x, got NaN or infinity")
    x = x.detach().double()
    return x.unsqueeze(1) if x.dim() == 2 else x.transpose(0, 1) if batch_first else x


def recurrent_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The outermost recurrent modules: stacks of ours and of torch.nn, and our layers outside of stacks."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch module, got {type(model).__name__}")
    inside: set[nn.Module] = set()
    for name, module in model.named_modules():
        if module not in inside and isinstance(
            module, RecurrentStack | RecurrentLayer | OutputRecurrent | nn.RNN | nn.GRU | nn.LSTM
        ):
            inside.update(module.modules())
            yield name, module


def _views(owner: str, module: nn.Module) -> Iterator[LayerView]:
    if isinstance(module, RecurrentLayer | OutputRecurrent):
        core = module if isinstance(module, RecurrentLayer) else module.layer
        name = owner or type(module).__name__
        yield LayerView(name, owner, _kind(core), core, None, fed_back=isinstance(module, OutputRecurrent))
        return
    assert isinstance(module, RecurrentStack | nn.RNNBase)
    of_torch = isinstance(module, nn.RNNBase)
    if isinstance(module, nn.LSTM) and module.proj_size:
        raise ValueError(f"expected LSTMs without projection, got proj_size={module.proj_size} in {owner or 'it'}")
    stack = as_stack(module)
    for index, layer in enumerate(stack.layers):
        depth, direction = divmod(index, stack.num_directions)
        name = f"{owner}.l{depth}".lstrip(".") + ("_reverse" if direction else "")
        if isinstance(layer, LayerGroup):
            for group, core in enumerate(layer.cores):
                yield LayerView(f"{name}_group{group}", owner, _kind(core), core, stack, index, group, of_torch)
        else:
            assert isinstance(layer, RecurrentLayer)
            yield LayerView(name, owner, _kind(layer), layer, stack, index, of_torch=of_torch)


def _kind(core: RecurrentLayer) -> str:
    """A subclass that steps in another way is another cell."""
    cell = core.cell
    known = (kind for kind, of in KNOWN.items() if isinstance(cell, of) and type(cell).step is of.step)
    return next(known, "other")


def _starts(stack: RecurrentStack, batch: int, hx: States | None) -> list[State]:
    """The state of each layer · direction before the first step."""
    cell, count = stack.cell, len(stack.layers)
    dtype = field_dtype(torch.float64, cell.complex)
    given = stack.initial_state(batch) if hx is None else hx
    parts = tuple(part.detach().to(dtype) for part in ((given,) if isinstance(given, Tensor) else given))
    if parts[0].dim() == 2:  # unbatched
        parts = tuple(part.unsqueeze(1) for part in parts)
    shape = (count, batch, stack.state_size)
    parts = check_state(parts if cell.states > 1 or len(parts) > 1 else parts[0], cell.states, shape, dtype)
    return [tuple(part[k] for part in parts) for k in range(count)]


def _below(stack: RecurrentStack, x_TBI: Tensor, starts: list[State], lengths_B: Tensor | None, depth: int) -> Tensor:
    """What the layers of this depth read: the output of those below, run without dropout."""
    for level in range(depth):
        outputs = []
        for direction in range(stack.num_directions):
            k = level * stack.num_directions + direction
            outputs.append(stack.layers[k](x_TBI, starts[k], lengths_B, reverse=direction == 1)[0])
        output = torch.cat(outputs, -1)
        x_TBI = output + x_TBI if stack.residual and level else output
    return x_TBI
