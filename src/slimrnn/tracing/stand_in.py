"""Stands in for tensors while a step is traced: every torch function called on it makes nodes of a graph instead.

A value is one node, (B, H), or several that lie along the axis of the gates, (B, G, H).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from slimrnn.tracing.graph import COMPARISONS, Graph, Node, where

Pointwise = Callable[..., Node]


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


# --- functions -------------------------------------------------------------------------------------------------------


def pointwise(make: Pointwise, of_comparisons: bool = False) -> Callable[..., StandIn]:
    """Node by node, gate by gate."""

    def apply(*args: Any) -> StandIn:
        traced = [a for a in args if isinstance(a, StandIn)]
        if not of_comparisons and any(n.op in COMPARISONS for a in traced for n in a.nodes):
            raise ValueError("a comparison is for torch.where, or a factor")
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


def _mul(graph: Graph, a: Node | float, b: Node | float) -> Node:
    """A comparison is a factor of 1 or 0."""
    factors = [where(f, 1.0, 0.0) if isinstance(f, Node) and f.op in COMPARISONS else f for f in (a, b)]
    return graph.make("mul", *factors)


def _where(graph: Graph, condition: Any, a: Any, b: Any) -> Node:
    if isinstance(a, Node) and a.op in COMPARISONS:  # a.where(condition, b)
        condition, a = a, condition
    if not isinstance(condition, Node) or condition.op not in (*COMPARISONS, "own"):
        raise ValueError("the condition is no comparison")
    if any(isinstance(n, Node) and n.op in COMPARISONS for n in (a, b)):
        raise ValueError("a comparison is chosen where a number should be")
    return where(graph.make("gt", condition, 0.0) if condition.op == "own" else condition, a, b)


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


def _clamp(x: StandIn, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else call("where", call("lt", x, min), min, x)
    return x if max is None else call("where", call("gt", x, max), max, x)


def _hardtanh(x: StandIn, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """As clamp, but without a gradient at the edges."""
    x = call("where", call("le", x, min_val), min_val, x)
    return call("where", call("ge", x, max_val), max_val, x)


def _power(graph: Graph, x: Node, exponent: Any) -> Node:
    exponent = exponent.constant if isinstance(exponent, Node) else exponent
    if exponent is None or abs(exponent) > 16 or exponent * 2 != int(exponent * 2):
        raise ValueError(f"powers are whole or half numbers up to 16, got {exponent}")
    if exponent < 0:
        return graph.make("div", 1.0, _power(graph, x, -exponent))
    whole, half = int(exponent), exponent != int(exponent)
    zero = graph.make("eq", x, 0.0)
    if half and whole:  # whose derivative at zero is zero, but not that of the square root
        x = where(zero, 1.0, x)
    found = graph.make("sqrt", x) if half else graph.constant(1.0)
    for _ in range(whole):
        found = found * x
    return where(zero, 0.0, found) if half and whole else found


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
        if any(n.is_complex or n.kind != "f" or n.op in COMPARISONS for n in x.nodes):
            raise ValueError("sums and means are of real numbers that differ from row to row and from unit to unit")
        totals = [n.graph.make("total", n) for n in x.nodes]
        return StandIn([t * t.graph.make("per_width", kind="c") if mean else t for t in totals], x.stacked)

    return reduce


def _layer_norm(x: StandIn, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> StandIn:
    _over_units(shape)
    mean = FUNCTIONS["mean"]
    centred = call("sub", x, mean(x, -1, True))
    return _scaled(centred, mean(call("mul", centred, centred), -1, True), weight, bias, eps)


def _rms_norm(x: StandIn, shape: Any, weight: Any = None, eps: float | None = None) -> StandIn:
    _over_units(shape)
    if eps is None:
        raise ValueError("rms_norm needs its eps as a number")
    return _scaled(x, FUNCTIONS["mean"](call("mul", x, x), -1, True), weight, None, eps)


def _over_units(shape: Any) -> None:
    if len(shape) != 1:
        raise ValueError(f"expected norms over the units alone, got {tuple(shape)}")


def _scaled(x: StandIn, variance: StandIn, weight: Any, bias: Any, eps: float) -> StandIn:
    x = call("div", x, call("sqrt", call("add", variance, eps)))
    x = x if weight is None else call("mul", x, weight)
    return x if bias is None else call("add", x, bias)


def _same(x: StandIn, *_: Any, **__: Any) -> StandIn:
    return x


IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ipow", "setitem")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{n: basic(n) for n in ("neg", "sigmoid", "tanh", "exp", "log", "sqrt", "abs", "relu", "maximum", "minimum")},
    **{n: basic(n) for n in ("gt", "lt", "ge", "le", "eq", "sign")},
    "where": pointwise(_where, of_comparisons=True),
    "mul": pointwise(_mul, of_comparisons=True),
    "add": alpha("add"),
    "sub": alpha("sub"),
    "radd": lambda a, b: call("add", b, a),
    "rmul": lambda a, b: call("mul", b, a),
    "rsub": lambda a, b: call("sub", b, a),
    "subtract": alpha("sub"),
    "multiply": pointwise(_mul, of_comparisons=True),
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
    "hardtanh": _hardtanh,
    "softplus": lambda x, beta=1.0, threshold=20.0: pointwise(_softplus)(x, beta, threshold),
    "logsigmoid": pointwise(lambda graph, x: -graph.make("softplus", -x)),
    "log_sigmoid": pointwise(lambda graph, x: -graph.make("softplus", -x)),
    "silu": lambda x: call("mul", x, call("sigmoid", x)),
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
