"""The memory that the native core shares out to its parts knows its end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[2] / "csrc"
PROGRAM = """
#include "arena.h"
#include <cstdio>
using namespace slimrnn;
using Numbers = SLIMRNN_ISA::Arena<float>;

int main() {
    Numbers counted;
    for (int64_t size : {3, 100, 0}) counted.take(size);
    static float memory[1024];
    Numbers arena(memory, counted.taken());
    float *first = arena.take(3), *second = arena.take(100);
    bool sound = first == memory && second >= first + 3 && arena.take(0) <= memory + counted.taken();
    try {
        arena.take(1);
    } catch (const ArenaOverflow &) {
        puts(sound ? "refused" : "parts overlap");
        return 0;
    }
    puts("too much was handed out");
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++ to compile a program that uses csrc/arena.h")
def test_more_than_was_counted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(PROGRAM)
    subprocess.run(["g++", "-std=c++17", f"-I{CSRC}", "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=True, text=True).stdout == "refused\n"
