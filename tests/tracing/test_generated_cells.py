"""csrc/cells/generated.h is what `make cells` writes, and the library was built from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry import needs_library
from slimrnn.ops.library import cell_codes
from slimrnn.tracing.built_in import BUILT_IN, generated_header
from slimrnn.tracing.program import assembled, lowered
from slimrnn.tracing.trace import trace

HEADER = Path(__file__).parents[2] / "csrc/cells/generated.h"


def test_generated_cells_are_those_of_the_python_sources() -> None:
    """But for white space, which clang-format changes."""
    now, then = generated_header().split(), HEADER.read_text().split()
    assert "".join(now) == "".join(then), "the cells have changed: run `make cells`"


@needs_library
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_cells_are_compiled(name: str) -> None:
    program = assembled(lowered(trace(BUILT_IN[name](5))))
    assert program.fingerprint in cell_codes(), "the library is older than csrc/cells/generated.h: build it again"
