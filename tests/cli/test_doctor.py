"""`slimrnn doctor`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from registry import needs_library
from slimrnn.cli import main
from slimrnn.ops import resolve_backend
from slimrnn.ops.library import ABI, cell_codes, native_library
from slimrnn.tracing.built_in import BUILT_IN


def facts(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(["doctor"]) == 0
    told = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    return {name: value.strip() for name, value in told.items()}


def test_doctor_tells_versions_and_backend(capsys: pytest.CaptureFixture[str]) -> None:
    told = facts(capsys)
    assert told["torch"] == torch.__version__
    assert told["backend"].startswith(resolve_backend("auto"))
    assert {"lightning", "tyro", "safetensors", "threads"} <= set(told)


@needs_library
def test_doctor_names_the_library_that_was_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    path, _, built = facts(capsys)["library"].partition(" (")
    assert Path(path).is_file()
    assert native_library()._name == path  # type: ignore[union-attr]
    assert re.fullmatch(rf"(GCC|Clang) \d+\.\d+\.\d+, interface version {ABI}\)", built)


@needs_library
def test_doctor_counts_compiled_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        facts(capsys)["cells"] == f"{len(cell_codes())} compiled; all others run as bytecode (rnn.runs_as says which)"
    )
    assert len(cell_codes()) >= len(BUILT_IN)


def test_doctor_lists_data(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SLIMRNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert facts(capsys)["data"].startswith(f"none in {tmp_path / 'cache' / 'slimrnn' / 'data'}: ")
    assert "set SLIMRNN_DATA" in facts(capsys)["data"]
    (tmp_path / "mnist").mkdir()
    (tmp_path / "ptb.txt").touch()
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    assert facts(capsys)["data"] == f"{tmp_path}: mnist/, ptb.txt"
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path / "ptb.txt"))
    assert "not a directory" in facts(capsys)["data"]


def test_doctor_takes_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--verbose"]) == 2
    assert capsys.readouterr().err == "slimrnn: expected no options after slimrnn doctor, got --verbose\n"
