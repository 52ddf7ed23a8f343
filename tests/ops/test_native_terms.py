"""Every structure in the native core by itself, for every range of gates: product, adjoint and gradient."""

from __future__ import annotations

import ctypes

import pytest
import torch
from native_cases import ISAS, instruction_set
from torch import Tensor

from registry import STRUCTURES, fits, needs_library, numbers
from slimrnn import BlockDiagonal, Dense, Diagonal, Kronecker, LowRank, Structure
from slimrnn._fields import real_view
from slimrnn.ops.calls import DTYPES, FilledTerms
from slimrnn.ops.library import CellStruct, ScanStruct, check, native_library
from slimrnn.ops.programs import CellProgram, NativeCell
from slimrnn.ops.terms import Plan, Term
from slimrnn.structures.base import StructuredMap

pytestmark = needs_library
PRODUCT, ADJOINT, GRADIENT = range(3)  # slimrnn_way
GUARD = 7.0
SHAPES: dict[str, tuple[int, Structure]] = {
    **{name: (12, structure) for name, structure in STRUCTURES.items()},
    "narrow": (6, BlockDiagonal(3)),
    "wide": (70, Dense()),
    "wide-low-rank": (37, LowRank(9)),
    "wide-tied": (37, LowRank(9, tied=True)),
    "wide-diagonal": (37, Diagonal()),
    "kronecker-2s": (64, Kronecker([2] * 6)),
    "kronecker-8s-last": (128, Kronecker([2, 4, 2, 8])),
    "kronecker-8s-first": (256, Kronecker([8, 4, 4, 2])),
}
CELL = CellProgram(1, 1, 1, 0, 1, 0, 0, 0, 0)  # which nobody asks for anything
CASES = [(name, field) for name in SHAPES for field in (False, True) if fits(SHAPES[name][1], field)]


def build(name: str, pairs: bool) -> StructuredMap:
    size, structure = SHAPES[name]
    gates = 1 if name == "unitary-product" else 4
    return structure.build(size, size, gates, complex=pairs, dtype=torch.float64)


def filled(term: Term, pairs: bool, gradients: list[Tensor]) -> FilledTerms:
    return FilledTerms(Plan(NativeCell(CELL), pairs, ((term.structure, len(term.tensors)),)), term.tensors, gradients)


def call(term: Term, gates: int, size: int, pairs: bool, way: int, span: range, x: Tensor, y: Tensor) -> list[Tensor]:
    """`slimrnn_product` on rows of x and y; returns the gradients."""
    tensors = [real_view(t).to(x.dtype) if t.is_floating_point() or t.is_complex() else t for t in term.tensors]
    sums = [torch.zeros(t.shape, dtype=t.dtype) for t in tensors]
    held, library = filled(Term(term.structure, tuple(tensors)), pairs, sums), native_library()
    assert library is not None
    width = size * (1 + pairs)
    cell = ctypes.pointer(CellStruct(matrices=gates))
    scan = ScanStruct(dtype=DTYPES[x.dtype], is_complex=pairs, cell=cell, width=width, term_count=1, terms=held.structs)
    arguments = (way, len(x), span.start, span.stop, x.data_ptr(), y.data_ptr())
    check(library.slimrnn_product(ctypes.byref(scan), *arguments))
    return sums


def flat(t: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows of real numbers, with a row behind them that nobody may touch."""
    rows = (torch.view_as_real(t) if t.is_complex() else t).reshape(len(t), -1).to(dtype)
    return torch.cat([rows, torch.full_like(rows[:1], GUARD)])


def check_range(built: StructuredMap, span: range, rows: int, dtype: torch.dtype) -> None:
    pairs, size, gates = built.complex, built.shape.in_size, built.shape.gates
    chosen, tolerance = slice(span.start, span.stop), 1e-11 if dtype == torch.float64 else 2e-4
    terms = built.terms(built.prepare())
    assert terms is not None
    x, y = numbers(rows, size, complex=pairs), numbers(rows, len(span), size, complex=pairs)
    weights = [t.detach().requires_grad_(t.is_floating_point() or t.is_complex()) for n in terms for t in n.tensors]
    product = built.matvec(x, chosen, tuple(weights))
    wanted = [w for w in weights if w.requires_grad]
    expected = iter(torch.autograd.grad(product, wanted, y, allow_unused=True) if wanted else ())
    forth, back = flat(torch.zeros_like(y), dtype), flat(torch.zeros_like(x), dtype)
    for term in terms:
        given = (gates, size, pairs)
        call(term, *given, PRODUCT, span, flat(x, dtype)[:rows], forth[:rows])
        call(term, *given, ADJOINT, span, back[:rows], flat(y, dtype)[:rows])
        sums = call(term, *given, GRADIENT, span, flat(x, dtype)[:rows], flat(y, dtype)[:rows])
        for t, found in zip(term.tensors, sums, strict=True):
            if t.is_floating_point() or t.is_complex():
                right = next(expected)
                right = torch.zeros_like(t) if right is None else right
                torch.testing.assert_close(found.double(), real_view(right), rtol=tolerance, atol=tolerance * rows)
    for actual, right in ((forth, product.detach()), (back, built.rmatvec(y, chosen).detach())):
        assert torch.all(actual[rows:] == GUARD)
        torch.testing.assert_close(
            actual[:rows].double(), flat(right, torch.float64)[:rows], rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("name", "pairs"), CASES)
def test_every_range_of_gates(name: str, pairs: bool, isa: str) -> None:
    built = build(name, pairs)
    gates = built.shape.gates
    spans = [range(first, last) for first in range(gates) for last in range(first + 1, gates + 1)]
    with instruction_set(isa):
        for number, span in enumerate(spans):
            for rows in {1, 9} if len(span) == gates else {1 + number % 9}:
                for dtype in DTYPES:
                    check_range(built, span, rows, dtype)


def test_bad_ranges_are_refused() -> None:
    built, library = build("dense", False), native_library()
    assert library is not None
    (term,) = built.terms(built.prepare()) or []
    held, x = filled(term, False, []), numbers(4, 48)
    cell = ctypes.pointer(CellStruct(matrices=4))
    scan = ScanStruct(dtype=1, cell=cell, width=12, term_count=1, terms=held.structs)
    for first, last in ((-1, 2), (2, 2), (3, 2), (0, 5)):
        status = library.slimrnn_product(ctypes.byref(scan), PRODUCT, 1, first, last, x.data_ptr(), x.data_ptr())
        assert status == 1
