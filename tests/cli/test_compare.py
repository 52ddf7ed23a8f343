"""`slimrnn compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import TINY, complaint, trained
from matplotlib import image

from slimrnn.cli import main

Capture = pytest.CaptureFixture[str]


def test_table_and_plot(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trained(Path("dense"))
    trained(Path("slim"), "--model.structure=diagonal", "--updates=4")
    capsys.readouterr()
    assert main(["compare", "dense", "slim"]) == 0
    heading, dense, slim, baseline, *_ = capsys.readouterr().out.splitlines()
    assert heading.split() == ["parameters", "updates", "time", "test", "loss", "test", "recall", "accuracy"]
    for name, row in (("dense", dense), ("slim", slim)):
        record = json.loads(Path(name, "run.json").read_text())
        cells = row.split()
        assert cells[:3] == [name, str(record["parameters"]["total"]), str(record["config"]["updates"])]
        assert cells[-2] == f"{record['result']['best']['test']['loss']:.4g}"
    assert baseline.split() == ["memoryless", "0.8664"]
    assert image.imread("out/compare.png").std() > 0


def test_run_that_has_not_ended_is_shown_as_far_as_it_is(tmp_path: Path, capsys: Capture) -> None:
    directory = trained(tmp_path / "run")
    record = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps(record | {"status": "running", "result": None}))
    rows = (directory / "curve.csv").read_text().splitlines()
    (directory / "curve.csv").write_text("\n".join(rows[:-1]) + "\n")
    capsys.readouterr()
    assert main(["compare", str(directory), "--out", str(tmp_path / "plot.svg")]) == 0
    cells = capsys.readouterr().out.splitlines()[1].split()
    assert cells[2] == "4"
    loss = float(rows[-2].split(",")[rows[0].split(",").index("test/loss")])
    assert cells[-2] == f"{loss:.4g}"


def test_runs_that_do_not_belong_together_are_refused(tmp_path: Path, capsys: Capture) -> None:
    copy = trained(tmp_path / "copy")
    assert main(["train", "adding", *TINY, "--out", str(tmp_path / "adding")]) == 0
    refused = complaint(capsys, "compare", str(copy), str(tmp_path / "adding"))
    assert refused == "expected runs of one task, got adding and copy"
    assert "expected --out to end in .png" in complaint(capsys, "compare", str(copy), "--out", "plot.txt")
