"""Stands in for tensors while a step is traced: every torch function called on it makes nodes of a graph instead.

A value is one node, (B, H), or several that lie along the axis of the gates, (B, G, H).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from slimrnn.tracing.graph import Graph, Node

IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ipow", "setitem")
FUNCTIONS: dict[str, Callable[..., Any]] = {}  # by torch's names; slimrnn.tracing.functions fills it


class Untraceable(Exception):
    """The step does something that the native core does not have; the message says what, and where."""


class StandIn:
    """One node, or one for each gate ("stacked"); or none, for a tensor that no step can use ("unfit")."""

    def __init__(self, nodes: Sequence[Node], stacked: bool = False, unfit: str = "") -> None:
        self.nodes, self.stacked, self.unfit = list(nodes), stacked, unfit

    @property
    def graph(self) -> Graph:
        return self.nodes[0].graph

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return call(getattr(func, "__name__", str(func)), *args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(Tensor, name):
            raise AttributeError(f"a tensor has no attribute {name!r}")
        if name in ("size", "dim", "item", "numpy", "tolist") or not callable(getattr(Tensor, name)):
            raise Untraceable(f"reads .{name} of a traced value{line_of_step()}")
        return lambda *args, **kwargs: call(name, self, *args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return call("getitem", self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise Untraceable(f"writes into a tensor in place{line_of_step()}")

    def __bool__(self) -> bool:
        raise Untraceable(f"branches on a value (use torch.where){line_of_step()}")

    def __float__(self) -> float:
        raise Untraceable(f"takes a number out of a tensor{line_of_step()}")

    __int__ = __index__ = __float__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        raise Untraceable(f"reads the length of a traced value{line_of_step()}")

    def __iter__(self) -> Any:
        raise Untraceable(f"iterates over a tensor (use unbind(-2)){line_of_step()}")


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """A torch function by its name, on stand-ins and numbers."""
    plain = name.strip("_")
    in_place = (name.endswith("_") and not name.startswith("__")) or plain in IN_PLACE or kwargs.pop("inplace", False)
    if in_place or kwargs.get("out") is not None:
        raise Untraceable(f"writes into a tensor in place ({plain}){line_of_step()}")
    if plain not in FUNCTIONS:
        raise Untraceable(f"uses {plain}, which is not among the operations of native cells{line_of_step()}")
    for a in (*args, *kwargs.values()):
        if isinstance(a, Tensor):
            raise Untraceable(
                f"uses a tensor that is neither a parameter nor a buffer of the cell (a constant should be a python "
                f"number){line_of_step()}"
            )
        if isinstance(a, StandIn) and a.unfit:
            raise Untraceable(f"uses {a.unfit}{line_of_step()}")
        if isinstance(a, float) and math.isnan(a):
            raise Untraceable(f"has a constant that is NaN{line_of_step()}")
    try:
        return FUNCTIONS[plain](*args, **kwargs)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise Untraceable(f"uses {plain} in a way that native cells do not have ({error}){line_of_step()}") from error


def line_of_step() -> str:
    """Where the step is at the moment: the innermost frame that is neither torch's nor of this package's tracing."""
    frame = sys._getframe(1)
    while frame is not None:
        if not _is_ours(frame.f_globals.get("__name__", "")):
            return f" in line {frame.f_lineno} of {frame.f_code.co_filename}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def line_of(error: BaseException) -> str:
    """Where an error came up, in the same words."""
    found, trace = "", error.__traceback__
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_globals.get("__name__", "")):
            found = f" in line {trace.tb_lineno} of {trace.tb_frame.f_code.co_filename}"
        trace = trace.tb_next
    return found


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "torch" or module.startswith(__package__)


def _operator(name: str) -> Callable[..., Any]:
    return lambda *args: call(name, *args)


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "abs", "pow"):
    setattr(StandIn, f"__{_name}__", _operator(_name))
for _name in ("eq", "ne", "gt", "lt", "ge", "le", *IN_PLACE[:5]):
    setattr(StandIn, f"__{_name}__", _operator(_name))
for _name in (
    "rpow",
    "matmul",
    "rmatmul",
    "mod",
    "rmod",
    "floordiv",
    "rfloordiv",
    "and",
    "rand",
    "or",
    "ror",
    "invert",
):
    setattr(StandIn, f"__{_name}__", _operator(_name))
