"""Stands in for tensors while a step is traced: every torch function called on it makes nodes of a graph instead.

A value is one node, (B, H), or several that lie along the axis of the gates, (B, G, H).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from slimrnn.tracing.graph import Graph, Node, where

Pointwise = Callable[..., Node]


class Untraceable(Exception):
    """The step does something that the native core does not have; the message says what, and where."""


class StandIn:
    """One node, or one for each gate ("stacked")."""

    def __init__(self, nodes: Sequence[Node], stacked: bool = False) -> None:
        self.nodes, self.stacked = list(nodes), stacked

    @property
    def graph(self) -> Graph:
        return self.nodes[0].graph

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return call(getattr(func, "__name__", str(func)), *args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("shape", "size", "dtype", "device", "dim", "ndim", "item", "numpy", "data", "grad"):
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

    def __len__(self) -> int:
        raise Untraceable(f"asks for the length of a traced value{line_of_step()}")

    def __iter__(self) -> Any:
        raise Untraceable(f"iterates over a tensor (use unbind(-2)){line_of_step()}")


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """A torch function by its name, on stand-ins and numbers."""
    plain = name.strip("_")
    if (name.endswith("_") and not name.startswith("__")) or plain in ("iadd", "isub", "imul", "itruediv", "setitem"):
        raise Untraceable(f"writes into a tensor in place ({name}){line_of_step()}")
    if plain not in FUNCTIONS:
        raise Untraceable(f"uses {plain}, which is not among the operations of native cells{line_of_step()}")
    for a in args:
        if isinstance(a, Tensor):
            raise Untraceable(
                f"uses a tensor that is neither a parameter nor a buffer of the cell (a constant should be a python "
                f"number){line_of_step()}"
            )
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
        file = frame.f_code.co_filename
        if "/torch/" not in file.replace("\\", "/") and not frame.f_globals.get("__name__", "").startswith(__package__):
            return f" in line {frame.f_lineno} of {file}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


# --- functions -------------------------------------------------------------------------------------------------------


def pointwise(make: Pointwise) -> Callable[..., StandIn]:
    """Node by node, gate by gate."""

    def apply(*args: Any) -> StandIn:
        traced = [a for a in args if isinstance(a, StandIn)]
        graph, sizes = traced[0].graph, {len(a.nodes) for a in traced if a.stacked}
        if not sizes:
            return StandIn([make(graph, *(_part(a, 0) for a in args))])
        if len(sizes) > 1 or any(not a.stacked and a.nodes[0].kind in "fr" for a in traced):
            raise ValueError("shapes (B, H) and (B, G, H), or different numbers of gates, in one operation")
        return StandIn([make(graph, *(_part(a, k) for a in args)) for k in range(sizes.pop())], True)

    return apply


def _part(a: Any, k: int) -> Any:
    if isinstance(a, StandIn):
        return a.nodes[k if a.stacked else 0]
    if not isinstance(a, int | float):
        raise ValueError(f"expected tensors and numbers, got {a!r}")
    return float(a)


def basic(op: str) -> Callable[..., StandIn]:
    return pointwise(lambda graph, *a: graph.make(op, *a))


def alpha(op: str) -> Callable[..., StandIn]:
    """torch.add and torch.sub."""
    plain = basic(op)
    return lambda a, b, *, alpha=1: plain(a, b if alpha == 1 else b * alpha)


def _gate_axis(x: StandIn, dim: int) -> None:
    if not x.stacked or dim != -2:
        raise ValueError(f"only the axis of the gates, -2, can be taken apart, got {dim}")


def _unbind(x: StandIn, dim: int = 0) -> tuple[StandIn, ...]:
    _gate_axis(x, dim)
    return tuple(StandIn([n]) for n in x.nodes)


def _squeeze(x: StandIn, dim: int) -> StandIn:
    _gate_axis(x, dim)
    return StandIn(x.nodes) if len(x.nodes) == 1 else x


def _split(x: StandIn, size: int | Sequence[int], dim: int = 0) -> tuple[StandIn, ...]:
    _gate_axis(x, dim)
    count = len(x.nodes)
    sizes = [min(size, count - k) for k in range(0, count, size)] if isinstance(size, int) else list(size)
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return tuple(StandIn(x.nodes[end - size : end], True) for end, size in zip(ends, sizes, strict=True))


def _chunk(x: StandIn, chunks: int, dim: int = 0) -> tuple[StandIn, ...]:
    return _split(x, -(-len(x.nodes) // chunks), dim)


def _getitem(x: StandIn, index: Any) -> StandIn:
    if isinstance(index, tuple) and len(index) == 3 and index[0] in (Ellipsis, slice(None)) and index[2] == slice(None):
        index = index[1]
    elif not (x.nodes[0].kind == "u" and isinstance(index, int | slice)):  # a row of the cell's own parameters
        raise ValueError(f"index {index!r}; a gate is wx[..., k, :]")
    if not x.stacked:
        raise ValueError(f"index {index!r} of a value without an axis of gates")
    return StandIn(x.nodes[index], True) if isinstance(index, slice) else StandIn([x.nodes[index]])


def _clamp(x: StandIn, min: float | None = None, max: float | None = None) -> StandIn:
    def clamp(graph: Graph, x: Node) -> Node:
        x = x if min is None else where(graph.make("lt", x, min), min, x)
        return x if max is None else where(graph.make("gt", x, max), max, x)

    return pointwise(clamp)(x)


def _power(graph: Graph, x: Node, exponent: Any) -> Node:
    exponent = exponent.constant if isinstance(exponent, Node) else exponent
    if exponent is None or abs(exponent) > 16 or exponent * 2 != int(exponent * 2):
        raise ValueError(f"powers are whole or half numbers up to 16, got {exponent}")
    if exponent < 0:
        return graph.make("div", 1.0, _power(graph, x, -exponent))
    found = graph.constant(1.0) if exponent == int(exponent) else graph.make("sqrt", x)
    for _ in range(int(exponent)):
        found = found * x
    return found


def _softplus(graph: Graph, x: Node, beta: Any = 1.0, threshold: Any = 20.0) -> Node:
    scaled = x * beta
    return where(graph.make("gt", scaled, threshold), x, graph.make("softplus", scaled) / beta)


def _reduced(mean: bool) -> Callable[..., StandIn]:
    """Sums and means over the units of a row; also sums over the gates."""

    def reduce(x: StandIn, dim: Any = None, keepdim: bool = False) -> StandIn:
        if dim in (-2, (-2,), [-2]) and x.stacked and not keepdim and not mean:
            first, *others = x.nodes
            return StandIn([sum(others, first)])
        if dim not in (-1, (-1,), [-1]) or not keepdim:
            raise ValueError("sums and means are over the units of a row: (-1, keepdim=True)")
        if any(n.is_complex or n.kind != "f" for n in x.nodes):
            raise ValueError("sums and means are of real numbers that differ from row to row and from unit to unit")
        totals = [n.graph.make("total", n) for n in x.nodes]
        return StandIn([t * t.graph.make("per_width", kind="c") if mean else t for t in totals], x.stacked)

    return reduce


def _layer_norm(x: StandIn, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> StandIn:
    mean = FUNCTIONS["mean"]
    centred = call("sub", x, mean(x, -1, True))
    return _scaled(centred, mean(call("mul", centred, centred), -1, True), weight, bias, eps)


def _rms_norm(x: StandIn, shape: Any, weight: Any = None, eps: float | None = None) -> StandIn:
    if eps is None:
        raise ValueError("rms_norm needs its eps as a number")
    return _scaled(x, FUNCTIONS["mean"](call("mul", x, x), -1, True), weight, None, eps)


def _scaled(x: StandIn, variance: StandIn, weight: Any, bias: Any, eps: float) -> StandIn:
    x = call("div", x, call("sqrt", call("add", variance, eps)))
    x = x if weight is None else call("mul", x, weight)
    return x if bias is None else call("add", x, bias)


def _same(x: StandIn, *_: Any, **__: Any) -> StandIn:
    return x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        n: basic(n)
        for n in ("mul", "neg", "sigmoid", "tanh", "exp", "log", "sqrt", "abs", "relu", "maximum", "minimum")
    },
    **{n: basic(n) for n in ("where", "gt", "lt", "ge", "le", "eq", "sign")},
    "add": alpha("add"),
    "sub": alpha("sub"),
    "radd": lambda a, b: call("add", b, a),
    "rmul": lambda a, b: call("mul", b, a),
    "rsub": lambda a, b: call("sub", b, a),
    "subtract": alpha("sub"),
    "multiply": basic("mul"),
    "div": basic("div"),
    "divide": basic("div"),
    "truediv": basic("div"),
    "rtruediv": lambda a, b: call("div", b, a),
    "rdiv": lambda a, b: call("div", b, a),
    "negative": basic("neg"),
    "sgn": basic("sign"),
    "reciprocal": lambda x: call("div", 1.0, x),
    "rsqrt": lambda x: call("div", 1.0, call("sqrt", x)),
    "square": lambda x: call("mul", x, x),
    "pow": pointwise(_power),
    "log1p": lambda x: call("log", call("add", x, 1.0)),
    "expm1": lambda x: call("sub", call("exp", x), 1.0),
    "clamp": _clamp,
    "clip": _clamp,
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0, **_: _clamp(x, min_val, max_val),
    "softplus": pointwise(_softplus),
    "logsigmoid": pointwise(lambda graph, x: -graph.make("softplus", -x)),
    "log_sigmoid": pointwise(lambda graph, x: -graph.make("softplus", -x)),
    "silu": lambda x, **_: call("mul", x, call("sigmoid", x)),
    "softsign": lambda x: call("div", x, call("add", call("abs", x), 1.0)),
    "leaky_relu": lambda x, slope=0.01, *_, **k: call(
        "where", call("gt", x, 0.0), x, call("mul", x, k.get("negative_slope", slope))
    ),
    "lerp": lambda a, b, weight: call("add", a, call("mul", weight, call("sub", b, a))),
    "addcmul": lambda a, b, c, *, value=1: call("add", a, call("mul", call("mul", b, c), value)),
    "unbind": _unbind,
    "squeeze": _squeeze,
    "split": _split,
    "chunk": _chunk,
    "select": lambda x, dim, index: _unbind(x, dim)[index],
    "getitem": _getitem,
    "mean": _reduced(True),
    "sum": _reduced(False),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "clone": _same,
    "contiguous": _same,
    "identity": _same,
}


def _operator(name: str) -> Callable[..., Any]:
    return lambda *args: call(name, *args)


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "abs", "pow"):
    setattr(StandIn, f"__{_name}__", _operator(_name))
for _name in ("gt", "lt", "ge", "le", "eq", "iadd", "isub", "imul", "itruediv"):
    setattr(StandIn, f"__{_name}__", _operator(_name))
# What Python would answer itself, or refuse without saying where: these are not among the functions.
for _name in ("ne", "matmul", "rmatmul", "rpow", "floordiv", "rfloordiv", "mod", "rmod", "and", "or", "xor", "invert"):
    setattr(StandIn, f"__{_name}__", _operator(_name))
