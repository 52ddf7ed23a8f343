"""A step of a cell as a graph: inputs wx, before and own, recurrent products, and the states after the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from slimrnn._fields import stacked
from slimrnn.cells.base import Cell, Matvec, State
from slimrnn.ops.noise import uniform
from slimrnn.tracing import functions as functions  # which stand-ins find by name
from slimrnn.tracing.attributes import Attributes
from slimrnn.tracing.graph import COMPARISONS, Graph, Node, order, rebuilt
from slimrnn.tracing.operations import OPERATIONS
from slimrnn.tracing.stand_in import StandIn, Untraceable, line_of, line_of_step

Rule = Callable[[StandIn, Any, State], State]  # a step, or something around one


class Trace(NamedTuple):
    """What one step does."""

    gates: int
    matrices: int
    is_complex: bool
    after: list[Node]  # the states
    own: list[Node]  # what is computed from parameters alone, once for the sequence: the rows of `own`

    @property
    def states(self) -> int:
        return len(self.after)

    @property
    def graph(self) -> Graph:
        return self.after[0].graph


class Leaves(NamedTuple):
    """Further inputs of a step, for what is around the cell's own."""

    parameter: Callable[[str], Any]  # by name: a number for each unit
    noise: Callable[[int], Any]  # of a stream, uniform


def trace(cell: Cell, around: Callable[[State, State, Leaves], State] | None = None) -> Trace:
    """Run the cell's step on stand-ins. `around` may change the states after it, given those before."""
    graph = Graph()

    def leaf(op: str, index: Any, kind: str = "f") -> Node:
        return graph.make(op, attr=index, kind=kind, is_complex=cell.complex and kind == "f")

    def own(name: str, row: int | None = None) -> Node:
        return leaf("own", (name, row), "u")

    wx = StandIn([leaf("wx", g) for g in range(len(cell.gates))], True)
    before: Any = tuple(StandIn([leaf("before", i)]) for i in range(cell.states))

    def matvec(h: Any, gates: slice = slice(None)) -> Any:
        if not isinstance(h, StandIn) or h.stacked or h.unfit or not _is_number(h.nodes[0], "fu"):
            raise Untraceable(f"multiplies something that is no vector (B, H){line_of_step()}")
        chosen = range(cell.matrices)[gates] if isinstance(gates, slice) else range(0)
        if chosen.step != 1 or not chosen:
            wanted = f"asks for matrices {gates!r} of {cell.matrices}; they must be a slice of some in a row"
            raise Untraceable(wanted + line_of_step())
        zero = graph.constant(0.0)
        return StandIn([graph.make("product", zero, h.nodes[0], attr=k) for k in chosen], True)

    def noise(stream: int) -> Any:
        if cell.complex:
            raise Untraceable("has noise on a complex state, which native cells do not have")
        return StandIn([leaf("noise", stream)])

    copy = stood_in(cell, own, cell.hidden_size)
    attributes = Attributes(copy)
    try:
        after = copy.step(cast(Tensor, wx), cast(Matvec, matvec), before)
    except Untraceable:
        raise
    except Exception as error:  # plain torch may bear it, or will say more
        raise Untraceable(f"cannot be traced ({type(error).__name__}: {error}){line_of(error)}") from error
    attributes.check()
    after = check_states(cell, after)
    if around is not None:
        after = around(before, after, Leaves(lambda name: StandIn([own(name)]), noise))
    roots = [_full(cast(StandIn, a).nodes[0]) for a in after]
    return hoisted(cell, fused(roots))


def check_states(cell: Cell, after: Any) -> State:
    name = type(cell).__name__
    if not isinstance(after, tuple) or len(after) != cell.states:  # which plain torch may not notice
        one = "a tensor" if isinstance(after, StandIn) else f"a {type(after).__name__}"
        got = f"a tuple of {len(after)}" if isinstance(after, tuple) else one
        raise TypeError(f"expected {name}.step to give a tuple of {cell.states}, the states after it, got {got}")
    for a in after:
        if not isinstance(a, StandIn) or a.unfit:
            raise Untraceable(f"gives a state that is no (B, H) tensor made from the input or the state of {name}")
        if a.stacked or a.nodes[0].kind == "r":
            got = f"(B, {len(a.nodes)}, H)" if a.stacked else "(B, 1)"
            raise TypeError(f"expected {name}.step to give states of shape (B, H), got one of {got}")
    return after


def _is_number(n: Node, kinds: str) -> bool:
    return n.kind in kinds and n.op not in COMPARISONS


def _full(n: Node) -> Node:
    if n.op in COMPARISONS:
        raise Untraceable("gives a state that is a comparison")
    if n.kind != "f":
        raise Untraceable("gives a state that does not depend on the input or the state before")
    return n


def stood_in(module: Any, own: Callable[[str, int | None], Node], hidden: int, prefix: str = "") -> Any:
    """A shallow copy of a module in which stand-ins take the places of all tensors."""
    copy: Any = object.__new__(parametrize.type_before_parametrizations(module))
    copy.__dict__ = {name: value for name, value in module.__dict__.items() if not isinstance(value, Tensor)}
    plain = {name: value for name, value in module.__dict__.items() if isinstance(value, Tensor)}
    computed = {name: getattr(module, name) for name in getattr(module, "parametrizations", ())}
    tensors = {**module._parameters, **module._buffers, **plain, **computed}
    made = {name: _rows(t, prefix + name, own, hidden) for name, t in tensors.items()}
    copy.__dict__.update({name: made.pop(name) for name in plain})  # before an attribute of the class with that name
    copy.__dict__["_parameters"], copy.__dict__["_buffers"] = made, {}
    children = {name: child for name, child in module._modules.items() if name != "parametrizations"}
    copy.__dict__["_modules"] = {
        name: child if child is None else stood_in(child, own, hidden, f"{prefix}{name}.")
        for name, child in children.items()
    }
    return copy


def _rows(t: Tensor | None, name: str, own: Callable[[str, int | None], Node], hidden: int) -> Any:
    if t is None:
        return None
    if t.dim() > 2 or (t.dim() and t.shape[-1] not in (1, hidden)):
        unfit = f"{name}, of shape {tuple(t.shape)}: what acts within a step is (H), (rows, H) or one number"
        return StandIn((), unfit=unfit)  # such as the bias of a complex cell, which is added outside of the step
    if t.is_complex():
        return StandIn((), unfit=f"{name}, which is complex: what acts within a step is real")
    if t.dim() == 2:
        return StandIn([own(name, row) for row in range(len(t))], True)
    return StandIn([own(name, None)])


def fused(roots: list[Node]) -> list[Node]:
    """wx_g + W_g v, or a number for each unit + W_g v, is one product that starts there, if unseen by others."""
    uses: dict[Node, int] = {}
    for n in order(roots):
        for a in n.args:
            uses[a] = uses.get(a, 0) + 1
    for root in roots:
        uses[root] = uses.get(root, 0) + 1
    new: dict[Node, Node] = {}
    for n in order(roots):
        args = [new[a] for a in n.args]
        new[n] = n.graph.make(n.op, *args, attr=n.attr, kind=n.kind, is_complex=n.is_complex)
        for product, base in ((0, 1), (1, 0)) if n.op == "add" else ():
            p, b = n.args[product], n.args[base]
            if p.op != "product" or p.args[0].constant != 0 or uses[p] > 1:
                continue
            if (b.op == "wx" and b.attr == p.attr and uses[b] == 1) or b.kind == "u":
                new[n] = n.graph.make("product", args[base], new[p].args[1], attr=p.attr, is_complex=p.is_complex)
                break
    return [new[root] for root in roots]


def _leaves(n: Node) -> bool:
    """Not comparisons, which are no numbers, nor what is chosen of constants, which is of no certain type."""
    chosen = n.op == "where" and all(a.kind == "c" for a in n.args[1:])
    return _is_number(n, "u") and not chosen


def hoisted(cell: Cell, roots: list[Node]) -> Trace:
    """What is computed from parameters alone leaves the step: it becomes the rows of `own`."""
    found: dict[Node, Node] = {}
    for n in order(roots, stop=[n for n in order(roots) if _leaves(n)]):
        for a in n.args:
            if _leaves(a) and a not in found:
                found[a] = n.graph.make("row", attr=len(found), kind="u")
    after = rebuilt(roots, found)
    return Trace(len(cell.gates), cell.matrices, cell.complex, after, list(found))


def own_rows(cell: nn.Module, trace: Trace, further: dict[str, Tensor]) -> Tensor | None:
    """(rows, H): what `trace.own` is now, by torch, so that gradients reach the parameters."""
    if not trace.own:
        return None
    hidden: int = cell.hidden_size  # type: ignore[assignment]
    values: dict[Node, Any] = {}
    nodes = order(trace.own)
    for n in nodes:
        if n.op == "own":
            name, row = n.attr
            t = further[name] if name in further else _attribute(cell, name)
            values[n] = t if row is None else t[row]
    dtype = next((t.dtype for t in values.values() if t.is_floating_point()), torch.get_default_dtype())
    for n in nodes:
        if n.op != "own":
            values[n] = evaluate(n, [values[a] for a in n.args], hidden, dtype)
    return stacked([torch.as_tensor(values[n]).expand(hidden) for n in trace.own])


def _attribute(module: nn.Module, path: str) -> Tensor:
    *parents, name = path.split(".")
    for parent in parents:
        module = getattr(module, parent)
    return getattr(module, name)  # type: ignore[no-any-return]


def evaluate(n: Node, args: list[Any], hidden: int, dtype: torch.dtype) -> Any:
    """A node by torch; of this type where numbers alone do not tell."""
    if n.op == "const":
        return n.attr
    if n.op == "per_width":
        return 1.0 / hidden
    if n.op in ("maximum", "minimum"):  # which take no numbers
        some = next(a for a in args if isinstance(a, Tensor))
        args = [torch.as_tensor(a, dtype=some.dtype, device=some.device) for a in args]
    if n.op == "where" and not any(isinstance(a, Tensor) for a in args[1:]):
        args[1] = torch.tensor(args[1], dtype=dtype, device=args[0].device)
    return OPERATIONS[n.op].torch(*args)


class Noise(NamedTuple):
    """Where a step's noise comes from."""

    seed: Tensor | None
    number: int  # of the step


def step_of(trace: Trace, hidden: int) -> Callable[[Tensor, Matvec, State, Tensor | None, Noise], State]:
    """The traced step by torch: (wx, matvec, state, rows of own, noise) -> state."""
    nodes = order(trace.after)
    wanted: dict[Node, list[int]] = {}
    for n in nodes:
        if n.op == "product":
            wanted.setdefault(n.args[1], []).append(n.attr)

    def step(wx_BGH: Tensor, matvec: Matvec, state: State, own_RH: Tensor | None, noise: Noise) -> State:
        inputs, values = wx_BGH.unbind(-2), cast(dict[Node, Any], {})
        products: dict[Node, tuple[Tensor, ...]] = {}
        for n in nodes:
            if n.op == "wx":
                values[n] = inputs[n.attr]
            elif n.op == "before":
                values[n] = state[n.attr]
            elif n.op == "row":
                assert own_RH is not None
                values[n] = own_RH[n.attr]
            elif n.op == "noise":
                assert noise.seed is not None
                values[n] = uniform(noise.seed, n.attr, noise.number, state[0])
            elif n.op == "product":
                base, x = n.args
                first, last = min(wanted[x]), max(wanted[x]) + 1
                if x not in products:
                    products[x] = matvec(values[x], slice(first, last)).unbind(-2)
                values[n] = values[base] + products[x][n.attr - first]
            else:
                values[n] = evaluate(n, [values[a] for a in n.args], hidden, wx_BGH.dtype.to_real())
        return tuple(values[a] for a in trace.after)

    return step
