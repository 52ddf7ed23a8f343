"""Which steps of complex states the native core has, where a complex number is a pair of real ones."""

from __future__ import annotations

from slimrnn.tracing.graph import Node, order
from slimrnn.tracing.lower import LEAVES
from slimrnn.tracing.stand_in import Untraceable
from slimrnn.tracing.trace import Trace


def check_native(trace: Trace) -> None:
    """A complex number is a pair of real ones: what acts on both parts alike can be computed."""
    if not trace.is_complex:
        return
    for n in order(trace.after):
        if n.is_complex and n.op in LEAVES:
            continue
        if n.op in ("add", "sub", "neg", "where", "product"):
            _check_no_real_part(n)
        elif n.op in ("mul", "div"):
            first, second = (a.is_complex for a in n.args)
            if (second and n.op == "div") or (first and second):
                raise Untraceable(f"computes {n.op} of complex numbers, which native cells do not have")
        elif n.is_complex or any(a.is_complex for a in n.args):
            raise Untraceable(f"computes {n.op} of complex numbers, which native cells do not have")
    if not all(n.is_complex for n in trace.after):
        raise Untraceable("gives a real number as a complex state, which native cells do not have")


def _check_no_real_part(n: Node) -> None:
    """A real number would be added to the imaginary part as well, or be chosen there; zero may."""
    numbers = n.args[1:] if n.op == "where" else n.args
    if (n.is_complex or n.op == "product") and not all(a.is_complex or a.constant == 0 for a in numbers):
        raise Untraceable(f"computes {n.op} of real and complex numbers, which native cells do not have")
