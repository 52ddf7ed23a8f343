"""`slimrnn analyse`."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import complaint, trained

from slimrnn.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    trained(directory / "gru")
    trained(directory / "kru", "--model.cell=rnn", "--model.nonlinearity=modrelu", "--model.structure=kronecker")
    return directory


def analysed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main(["analyse", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_prints_the_summary_and_writes_report_and_figures(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = analysed(capsys, runs / "gru", "--out", tmp_path / "memory")
    assert out.startswith("SequenceModel: 1 recurrent layer on 8 sequences of 24 steps")
    assert out.endswith(f"report and figures: {tmp_path / 'memory' / 'report.html'}\n")
    written = {path.name for path in (tmp_path / "memory").iterdir()}
    assert {"report.html", "layer-0-reach.png", "layer-0-reach.svg"} <= written
    report = (tmp_path / "memory" / "report.html").read_text(encoding="utf-8")
    assert "What gru remembers" in report
    assert "GRU, 4 units, dense; copy, length 4" in report


def test_a_file_of_weights_is_a_net_of_its_run(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best, same = (
        analysed(capsys, path, "--out", tmp_path) for path in (runs / "gru", runs / "gru" / "best.safetensors")
    )
    assert best == same


def test_two_nets_side_by_side(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = analysed(capsys, "--compare", runs / "gru", runs / "kru", "--out", tmp_path)
    assert "gru\n===\n" in out
    assert "kru\n===\n" in out
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What gru and kru remember" in report
    assert report.count("<h3>kru</h3>") == 3


def test_less_data_can_be_asked_for(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--sequences=2", "--steps=10", "--split=train", "--thorough")
    out = analysed(capsys, runs / "gru", *options, "--out", tmp_path)
    assert "on 2 sequences of 10 steps" in out
    assert "memory range: it needs sequences of at least 16 steps, got 10" in out


def test_an_encoder_is_analysed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model.hidden=4", "--updates=2", "--eval-every=2", "--batch-size=4", "--valid-size=8"]
    options += ["--test-size=8", "--threads=1", "--no-tensorboard", "--out", str(tmp_path / "run")]
    assert main(["train", "reverse", *options]) == 0
    assert analysed(capsys, tmp_path / "run", "--out", tmp_path / "out").startswith("Encoder: 1 recurrent layer on ")


def test_what_cannot_be_analysed_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, "analyse", str(tmp_path)).startswith("expected the directory of a run, got")
    one, two = str(runs / "gru"), str(runs / "kru")
    assert complaint(capsys, "analyse", one, two) == "expected one run, or two with --compare, got 2"
    assert complaint(capsys, "analyse", "--compare", one) == "expected two runs after --compare, got 1"
    assert "--sequences of at least 1" in complaint(capsys, "analyse", one, "--sequences", "0")
    (tmp_path / "file").write_text("")
    assert "file" in complaint(capsys, "analyse", one, "--out", str(tmp_path / "file" / "inside"))
