"""Values of a whole row: computed once for each row, by themselves."""

from __future__ import annotations

import pytest
import torch
from both_backends import check, found, layer_with

from registry import needs_library
from slimrnn import LayerNormGRU
from slimrnn.cells import LayerNormGRUCell, LayerNormLSTMCell
from slimrnn.ops.programs import CellProgram, NativeCell
from slimrnn.tracing.graph import Graph, Node
from slimrnn.tracing.program import NUMBER, OPS


def vector(graph: Graph, number: int) -> Node:
    return graph.make("wx", attr=number, kind="f", is_complex=False)


def test_factors_of_a_row_leave_the_sum() -> None:
    graph = Graph()
    a, b = vector(graph, 0), vector(graph, 1)
    row = graph.make("total", a * a)
    assert graph.make("total", -(b * row)) is -(graph.make("total", b) * row)
    assert graph.make("total", b / row) is graph.make("total", b) * (1.0 / row)
    assert graph.make("total", a - b * row) is graph.make("total", a) - graph.make("total", b) * row
    assert graph.make("total", a - b).op == "total"


def test_centred_vectors_sum_to_zero() -> None:
    graph = Graph()
    a = vector(graph, 0)
    centred = a - graph.make("total", a) * graph.make("per_width", kind="c")
    assert graph.make("total", centred).constant == 0


def test_signs_go_outside() -> None:
    graph = Graph()
    a, b = vector(graph, 0), vector(graph, 1)
    assert a + -b is a - b
    assert a - -b is a + b
    assert -a + b is b - a
    assert -(a - b) is b - a
    assert -a * -b is a * b
    assert -a / b is -(a / b)


@needs_library
@pytest.mark.parametrize("width", [64, 300, 301])  # several rows at once, pieces of rows, and rows of broken vectors
def test_native_equals_reference(width: int) -> None:
    check(layer_with(LayerNormLSTMCell, width))


def spoiled(program: CellProgram, op: int, to: int, a: int) -> CellProgram:
    """Another first instruction after ROWS."""
    code = list(program.forward)
    at = [i[0] for i in code].index(NUMBER["ROWS"]) + 1
    code[at] = (op, to, a, 0, 0)
    return program._replace(forward=tuple(code))


@needs_library
@pytest.mark.parametrize(("op", "to", "a"), [("LOAD", 10, 0), ("NEG", 0, 10), ("NEG", 1 << 9, 10), ("NEG", 10, 1 << 9)])
def test_instructions_on_rows_stay_within_the_row_sums(op: str, to: int, a: int) -> None:
    layer = LayerNormGRU(2, 8)
    program = found(LayerNormGRUCell(8)).native.program
    assert len(program.constants) <= 10 < program.row_sums
    core = layer.cores[0]
    steps = core.traced_steps()
    assert steps is not None
    forced = [step._replace(native=NativeCell(spoiled(program, OPS.index(op), to, a))) for step in steps]
    core.traced_steps = lambda: forced  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        layer(torch.randn(3, 2, 2))
