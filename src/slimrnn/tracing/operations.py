"""The operations of a step, each described once: in torch, its gradient, and in C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from slimrnn.tracing.graph import Node, where

Gradients = tuple[Node | None, ...]


class Operation(NamedTuple):
    torch: Callable[..., Tensor]
    gradient: Callable[..., Gradients] | None  # (d, y, *arguments): of each argument, given d of y = op(*arguments)
    cpp: str
    is_costly: bool = False  # more than a few instructions: worth keeping


def _ties(op: str) -> Callable[..., Gradients]:
    """Of maximum (gt) and minimum (lt): at a tie, half for each, as torch."""

    def gradient(d: Node, y: Node, a: Node, b: Node) -> Gradients:
        first, second = y.graph.make(op, a, b), y.graph.make(op, b, a)
        return where(first, d, where(second, 0.0, d * 0.5)), where(second, d, where(first, 0.0, d * 0.5))

    return gradient


def _where(condition: Tensor, a: Any, b: Any) -> Tensor:
    return torch.where(condition, a, b)


def _softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), without the threshold of torch's own."""
    return -functional.logsigmoid(-x)


OPERATIONS: dict[str, Operation] = {
    "add": Operation(torch.add, lambda d, y, a, b: (d, d), "{} + {}"),
    "sub": Operation(torch.sub, lambda d, y, a, b: (d, -d), "{} - {}"),
    "mul": Operation(torch.mul, lambda d, y, a, b: (d * 2.0 * a, None) if a is b else (d * b, d * a), "{} * {}"),
    "div": Operation(torch.div, lambda d, y, a, b: (d / b, -(d * y) / b), "{} / {}", True),
    "neg": Operation(torch.neg, lambda d, y, a: (-d,), "-{}"),
    "sigmoid": Operation(torch.sigmoid, lambda d, y, a: (d * (y * (1.0 - y)),), "sigmoid<T>({})", True),
    "tanh": Operation(torch.tanh, lambda d, y, a: (d * (1.0 - y * y),), "hyperbolic_tangent<T>({})", True),
    "exp": Operation(torch.exp, lambda d, y, a: (d * y,), "exponential<T>({})", True),
    "log": Operation(torch.log, lambda d, y, a: (d / a,), "logarithm<T>({})", True),
    "softplus": Operation(_softplus, lambda d, y, a: (d * y.graph.make("sigmoid", a),), "softplus<T>({})", True),
    "sqrt": Operation(torch.sqrt, lambda d, y, a: (d * 0.5 / y,), "square_root<T>({})", True),
    "abs": Operation(torch.abs, lambda d, y, a: (d * y.graph.make("sign", a),), "magnitude<T>({})"),
    "sign": Operation(torch.sgn, lambda d, y, a: (None,), "sign<T>({})"),
    "relu": Operation(torch.relu, lambda d, y, a: (where(y.graph.make("gt", y, 0.0), d, 0.0),), "relu<T>({})"),
    "maximum": Operation(torch.maximum, _ties("gt"), "maximum<T>({}, {})"),
    "minimum": Operation(torch.minimum, _ties("lt"), "minimum<T>({}, {})"),
    "where": Operation(_where, lambda d, y, c, a, b: (None, where(c, d, 0.0), where(c, 0.0, d)), "{} ? {} : {}"),
    "gt": Operation(torch.gt, None, "{} > {}"),
    "lt": Operation(torch.lt, None, "{} < {}"),
    "ge": Operation(torch.ge, None, "{} >= {}"),
    "le": Operation(torch.le, None, "{} <= {}"),
    "eq": Operation(torch.eq, None, "{} == {}"),
    "total": Operation(lambda a: a.sum(-1, keepdim=True), lambda d, y, a: (d,), ""),
}
