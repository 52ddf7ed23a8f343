"""examples/copy_memory.py, in small."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "copy_memory.py"


def test_demo_can_be_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(SCRIPT))["main"]
    (tmp_path / "kru").mkdir()
    for _ in range(2):
        main(length=3, updates=2, out=tmp_path)
    said = capsys.readouterr().out
    assert [line.split()[:3] for line in said.splitlines() if line.startswith(("KRU  ", "LSTM  ", "GRU  "))] == [
        [name, parameters, "2"] for name, parameters in (("KRU", "5,314"), ("LSTM", "72,458"), ("GRU", "54,794"))
    ] * 2
    assert (tmp_path / "copy-memory.png").exists()
