"""`slimrnn export`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import complaint, trained

from slimrnn.cli import main
from slimrnn.exporting import Proof

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hidden = "24"  # as many units as the sequences have steps: axes are told apart by their sizes
    return trained(tmp_path_factory.mktemp("runs") / "gru", "--model.hidden", hidden)


def test_the_net_of_a_run_with_its_proof(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["export", str(run), "--to", "onnx", "--out", str(tmp_path / "net")]) == 0
    proof = Proof.read(tmp_path / "net.onnx.proof.json")
    assert capsys.readouterr().out == f"{proof}\n"
    assert (tmp_path / "net.onnx").exists()
    assert proof.relative <= 1e-5
    assert proof.cases[-1].way == "in steps"


def test_one_step_of_the_net(run: Path, tmp_path: Path) -> None:
    assert main(["export", str(run), "--step", "--out", str(tmp_path / "step.onnx")]) == 0
    assert Proof.read(tmp_path / "step.onnx.proof.json").step


def test_c_of_the_net(run: Path, tmp_path: Path) -> None:
    assert main(["export", str(run), "--to", "c", "--out", str(tmp_path / "net")]) == 0
    proof = Proof.read(tmp_path / "net.c.proof.json")
    assert (tmp_path / "net.h").exists()
    assert proof.cases[0].given
    assert proof.relative <= 1e-5
    assert main(["export", str(run), "--to", "c", "--int8", "--out", str(tmp_path / "small")]) == 0
    small = Proof.read(tmp_path / "small.c.proof.json")
    assert small.tolerance == small.largest == 0
    assert small.measured["bytes of weights"] < 0.5 * proof.measured["bytes of weights"]


def test_int8_with_the_scores_before_and_after(run: Path, tmp_path: Path) -> None:
    assert main(["export", str(run), "--to", "int8", "--out", str(tmp_path / "net")]) == 0
    proof = Proof.read(tmp_path / "net.proof.json")
    assert proof.relative == 0
    before, after = (proof.measured[f"loss in {kind}"] for kind in ("float32", "int8"))
    assert abs(after - before) < 0.05 * before
    assert (tmp_path / "net" / "config.json").exists()


def test_what_is_wrong_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none" in complaint(capsys, "export", str(tmp_path / "none"))


def test_int8_belongs_to_c(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected --int8 with --to c only, got --to onnx" in complaint(capsys, "export", str(run), "--int8")
