"""Torch's functions on stand-ins, by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slimrnn.tracing.graph import COMPARISONS, Graph, Node, where
from slimrnn.tracing.stand_in import FUNCTIONS, StandIn, call

Pointwise = Callable[..., Node]


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


FUNCTIONS |= {
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
