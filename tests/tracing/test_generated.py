"""The C++ of the built-in cells is what their python says, and the library has it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from both_backends import found

from registry import needs_library
from slimrnn.tracing.built_in import BUILT_IN, generated_header

COMMITTED = Path(__file__).parents[2] / "csrc" / "cells" / "generated.h"


def formatter() -> str | None:
    """The clang-format of this environment, as `make format` has it, or any."""
    beside = Path(sys.executable).with_name("clang-format")
    return str(beside) if beside.exists() else shutil.which("clang-format")


def test_the_committed_code_is_what_the_cells_give() -> None:
    text, committed, program = generated_header(), COMMITTED.read_text(), formatter()
    if program is None:
        assert "".join(text.split()) == "".join(committed.split())
        return
    command = [program, f"--assume-filename={COMMITTED}"]
    assert subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout == committed


def test_it_is_the_same_each_time() -> None:
    assert generated_header() == generated_header()


@needs_library
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_cells_run_compiled(name: str) -> None:
    for width in (1, 5, 64):  # the code does not depend on it
        assert found(BUILT_IN[name](width)).native.code >= 0


def test_built_in_cells_are_all_different() -> None:
    assert len({found(make(3)).native.program.fingerprint for make in BUILT_IN.values()}) == len(BUILT_IN)
