"""Recurrent: the stack with torch's interface for any cell; and `layer_of`, a class of such stacks for one cell."""

from __future__ import annotations

import inspect
import sys
from functools import partial
from typing import Any, ClassVar

from slimrnn._checks import suggestion
from slimrnn.cells.base import Cell
from slimrnn.layers.options import OPTIONS
from slimrnn.layers.stack import RecurrentStack

FROM_LAYER = ("hidden_size", "bias", "dtype", "device")  # what a layer tells its cell
OF_TORCH = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional")


class CellStack(RecurrentStack):
    """A stack of one kind of cell, whose own options come among the layer's."""

    cell_options: dict[str, Any]

    def __init__(self, cell_type: type[Cell], *sizes: Any, **options: Any) -> None:
        own = own_options(cell_type)
        known = [*OF_TORCH, *OPTIONS, *own]
        for name in options:
            if name not in known:
                got = f"an unexpected keyword argument {name!r}{suggestion(name, known)}"
                raise TypeError(f"expected an option of {type(self).__name__} or of {cell_type.__name__}, got {got}")
        given = {name: options.pop(name) for name in own if name in options}
        super().__init__(partial(cell_type, **given), *sizes, **options)
        self.cell_options = given

    def _describe_cell(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.cell_options.items())


class Recurrent(CellStack):
    """state_t = cell(U x_t + b, h ↦ W h, state_{t−1}) for any `Cell`, with torch.nn's interface and W of any structure.

    `Recurrent(MyCell, 10, 128, structure=LowRank(8), num_layers=2, batch_first=True)`: after the class of the cell come
    torch's arguments; options are those of the layer (`RecurrentStack` describes them) and of the cell's constructor.
    States are one tensor (layers · directions, batch, hidden_size), or a tuple of them where the cell has several."""

    def __init__(
        self,
        cell_type: type[Cell],
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Any,
    ) -> None:
        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__(cell_type, *sizes, **options)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({type(self.cell).__name__}, " + super().__repr__().removeprefix(f"{name}(")


class CellLayer(CellStack):
    """What `layer_of` makes subclasses of: a stack with torch's constructor."""

    cell_type: ClassVar[type[Cell]]
    defaults: ClassVar[dict[str, Any]] = {}  # options that differ from the usual ones

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Any,
    ) -> None:
        sizes = (input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__(self.cell_type, *sizes, **self.defaults | options)


def layer_of(cell_type: type[Cell], name: str | None = None, **defaults: Any) -> type[CellLayer]:
    """A class of layers with torch.nn's constructor: `MyLayer = layer_of(MyCell)` and then `MyLayer(10, 128, 2)`.

    Its name is the cell's without "Cell" at its end, or with "Layer" where it does not end so. To be pickled, it must
    stand under that name in the module that calls this function. `defaults` are options that differ from the usual
    ones: `layer_of(MyCell, structure=Diagonal())`."""
    own = own_options(cell_type)
    for option in defaults:
        if option not in (*OPTIONS, *own):
            hint = suggestion(option, [*OPTIONS, *own])
            raise TypeError(f"expected an option of the layer or of {cell_type.__name__}, got {option!r}{hint}")
    given = cell_type.__name__
    name = name or (given.removesuffix("Cell") if given.endswith("Cell") and given != "Cell" else f"{given}Layer")
    made = {
        "__doc__": cell_type.__doc__,
        "__module__": sys._getframe(1).f_globals.get("__name__", __name__),
        "__qualname__": name,
        "__signature__": _signature(own, defaults),
        "cell_type": cell_type,
        "defaults": defaults,
    }
    return type(name, (CellLayer,), made)


def own_options(cell_type: type[Cell]) -> dict[str, inspect.Parameter]:
    """The options of a cell's constructor, and where it takes **options, those of the constructor that it extends."""
    _check_cell(cell_type)
    found: dict[str, inspect.Parameter] = {}
    taken: set[str] = set()
    for cls in cell_type.__mro__:
        if "__init__" not in cls.__dict__:
            continue
        parameters = list(inspect.signature(cls.__dict__["__init__"]).parameters.values())[1:]
        named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        taken |= {p.name for p in named}
        if cls is not Cell:  # whether the state is complex is for a cell to offer
            found = {p.name: p for p in named if p.name not in FROM_LAYER} | found
        if cls is Cell or len(named) == len(parameters):
            break
    for name in FROM_LAYER:
        if name not in taken:
            rest = "hidden_size, bias, dtype and device, or **options that it hands to Cell's"
            raise TypeError(f"expected the constructor of {cell_type.__name__} to take {rest}, got no {name}")
    for name in found:
        if name in (*OF_TORCH, *OPTIONS):
            raise TypeError(f"expected options of {cell_type.__name__} that no layer has, got {name!r}")
    return found


def _check_cell(cell_type: object) -> None:
    if not isinstance(cell_type, type) or not issubclass(cell_type, Cell):
        what = f"an instance of {type(cell_type).__name__}" if isinstance(cell_type, Cell) else repr(cell_type)
        raise TypeError(f"expected a class of cells, a subclass of slimrnn.Cell, got {what}")
    name = cell_type.__name__
    if not getattr(cell_type, "gates", ()):
        raise TypeError(f"expected {name} to name its gates, such as gates = ('f', 'n'), got none")
    if cell_type.step is Cell.step:
        raise TypeError(f"expected {name} to define step(self, wx, matvec, state), got none")
    if not isinstance(cell_type.states, int) or cell_type.states < 1:
        raise TypeError(f"expected {name} to have states = 1 or more, got {cell_type.states!r}")


def _signature(own: dict[str, inspect.Parameter], defaults: dict[str, Any]) -> inspect.Signature:
    """Torch's arguments, the cell's options, and the layer's."""
    *usual, options = list(inspect.signature(CellLayer.__init__).parameters.values())[1:]
    mine = [p.replace(kind=p.KEYWORD_ONLY, default=defaults.get(name, p.default)) for name, p in own.items()]
    return inspect.Signature([*usual, *mine, options])
