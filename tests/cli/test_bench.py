"""`slimrnn bench`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from cli_runs import complaint

import slimrnn
from slimrnn.cli import main

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = "import sys, pathlib; pathlib.Path('said').write_text(' '.join(sys.argv[1:])); sys.exit(7)"


def test_arguments_and_exit_code_pass_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "src" / "slimrnn").mkdir(parents=True)
    (tmp_path / "benchmarks" / "run.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(slimrnn, "__file__", str(tmp_path / "src" / "slimrnn" / "__init__.py"))
    assert main(["bench", "--only", "GRU", "--quick"]) == 7
    assert (tmp_path / "said").read_text() == "--only GRU --quick"


def test_installed_package_says_that_it_has_no_benchmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(slimrnn, "__file__", str(tmp_path / "lib" / "site-packages" / "slimrnn" / "__init__.py"))
    assert "not part of the installed package" in complaint(capsys, "bench", "--quick")


# Of each only what the script makes of its arguments; that these get there and its exit code back is tested above.
REFUSED = {
    ("--x",): "expected options of slimrnn bench, got --x",
    ("--quik",): "expected options of slimrnn bench, got --quik; did you mean '--quick'?",
    ("stray",): "expected options of slimrnn bench, got stray",
    ("--threads", "0"): "expected --threads to be an integer of at least 1, got 0",
    ("--json",): "expected a value after --json, got none",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_errors_are_one_line(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module("run").parse()
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"slimrnn: {REFUSED[arguments]}\n")


def test_an_unknown_section_is_told_with_the_known_ones(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--section", "nothing"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("slimrnn: expected --section to be one of ")
    assert said.endswith(", got 'nothing'\n")
