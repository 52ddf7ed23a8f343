"""What the native core runs for a cell, found again as long as nothing about the cell changes."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

from slimrnn.cells.base import Cell, State
from slimrnn.cells.elman import ElmanCell
from slimrnn.cells.leaky import leaked
from slimrnn.cells.zoneout import zoned
from slimrnn.ops.programs import CellProgram, NativeCell
from slimrnn.tracing.dependences import key_of
from slimrnn.tracing.graph import as_text
from slimrnn.tracing.program import assembled, lowered
from slimrnn.tracing.stand_in import Untraceable
from slimrnn.tracing.trace import Leaves, Trace, trace

MOST_FOUND = 1000
LEAK = "the leak"  # no name of a parameter


class Traced(NamedTuple):
    """A cell's step, and what the core runs for it."""

    trace: Trace
    native: NativeCell


_found: dict[Any, Traced | str] = {}
_steps: dict[tuple[str, bool], Trace] = {}  # by the text of the program, and whether its numbers are complex


class Around(NamedTuple):
    """What happens to the state after the cell's own step."""

    leaky: bool = False
    zoneout: tuple[float, ...] | None = None
    noisy: bool = False  # zoneout in training

    def apply(self, before: State, after: State, leaves: Leaves) -> State:
        after = leaked(leaves.parameter(LEAK), before, after) if self.leaky else after
        if self.zoneout is None:
            return after
        return zoned(self.zoneout, before, after, leaves.noise if self.noisy else None)


def find(cell: Cell, around: Around = Around()) -> Traced | str:  # noqa: B008 - a tuple
    """The cell's step with what is around it, or why the core cannot run it."""
    try:
        key = (around, key_of(cell))
    except TypeError:  # something that could change unseen: looked at every time
        return _look(cell, around)
    if key not in _found:
        if len(_found) >= MOST_FOUND:  # an attribute that changes all the time
            _found.clear()
            _steps.clear()
        _found[key] = _look(cell, around)
    return _found[key]


def step_of_program(text: str, is_complex: bool) -> Trace | None:
    """The step that a program was made from, or another one that computes the same; None if not of this process."""
    return _steps.get((text, is_complex))


def explain_once(cell: Cell, reason: str) -> None:
    """Say why a cell runs in plain torch, once for each class and reason."""
    _explain(type(cell).__name__, reason)


@cache
def _explain(cell: str, reason: str) -> None:
    warnings.warn(f"{cell} runs in plain torch, many times slower: its step {reason}", RuntimeWarning, stacklevel=2)


def _look(cell: Cell, around: Around) -> Traced | str:
    try:
        found = trace(cell, around.apply)
        by_hand = _by_hand().get((cell.complex, as_text(found.after)))
        native = NativeCell(by_hand or assembled(lowered(found)))
        _steps[native.text, found.is_complex] = found
        return Traced(found, native)
    except Untraceable as reason:
        return str(reason)
    except RecursionError:
        return "is too long for native cells"


@cache
def _by_hand() -> dict[tuple[bool, str], CellProgram]:
    """Steps that csrc/cells/modrelu.h computes."""
    found = {}
    for is_complex in (True, False):
        cell = ElmanCell(1, nonlinearity="modrelu", complex=is_complex)
        for leaky in (False, True):
            name = f"modrelu{'' if is_complex else '_real'}{'_leaky' if leaky else ''}"
            text = as_text(trace(cell, Around(leaky).apply).after)
            found[is_complex, text] = CellProgram(
                gates=1,
                matrices=1,
                states=1,
                own_rows=1 + leaky,
                slots=1,
                kept=int(leaky),
                spares=0,
                row_sums=0,
                registers=0,
                products=((0, 0, 1, 1),),
                by_hand=name,
            )
    return found
