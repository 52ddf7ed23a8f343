"""`slimrnn train` on a user's table, and `slimrnn predict` on new ones."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from cli_runs import complaint

from own_cases import some_sequences, some_series, write_csv
from slimrnn.cli import main
from slimrnn.data.sequences import Sequences
from slimrnn.tasks.own import OwnTask
from slimrnn.tasks.own.defaults import variants

Capture = pytest.CaptureFixture[str]
TINY = ["--model.hidden=4", "--updates=4", "--eval-every=2", "--batch-size=4", "--threads=1", "--no-tensorboard"]


def trained(task: str, sequences: Sequences, directory: Path, *options: str) -> tuple[Path, Path]:
    """The run and the table."""
    table = write_csv(sequences, directory / "table.csv")
    run = directory / "run"
    assert main(["train", task, "--file", str(table), *TINY, "--out", str(run), *options]) == 0
    return run, table


def predicted(capsys: Capture, *arguments: str) -> list[str]:
    capsys.readouterr()
    assert main(["predict", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def assert_same(lines: list[str], others: list[str]) -> None:
    """Up to the last digit that is printed: a single step and a batch round differently."""
    assert len(lines) == len(others)
    for cell, other in zip(",".join(lines).split(","), ",".join(others).split(","), strict=True):
        if cell != other:
            assert float(cell) == pytest.approx(float(other), abs=1.5e-6)


def piped(monkeypatch: pytest.MonkeyPatch, capsys: Capture, run: Path, text: str) -> list[str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return predicted(capsys, str(run), "--file", "-")


def test_a_table_is_all_that_classification_needs(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, table = trained("classify", some_sequences(), tmp_path, "--against", "torch")
    said = capsys.readouterr().out
    assert "24 sequences of 5 to 9 steps, 2 columns (x, y), 2 classes" in said
    assert "a GRU of 64 units in each direction" in said
    rows = [line.split("  ")[0] for line in said.splitlines()]
    assert {"ours", "nn.LSTM", "majority class"} <= set(rows)
    assert (run / "confusion.csv").read_text().startswith("label,down,up\n")
    lines = predicted(capsys, str(run), "--file", str(table))
    assert lines[0] == "id,predicted,p(down),p(up)"
    assert [line.split(",")[0] for line in lines[1:]] == [f"s{i}" for i in range(24)]
    table_text = table.read_text()
    table.unlink()  # the net is used where the data is not
    assert piped(monkeypatch, capsys, run, table_text) == lines


def test_what_the_user_chose_otherwise_is_said(tmp_path: Path, capsys: Capture) -> None:
    trained("classify", some_sequences(), tmp_path, "--valid-share", "0.3")
    said = capsys.readouterr().out
    assert "none are held out for validation" in said
    assert "\nbut as you chose: --valid-share 0.3, --model.hidden 4\n" in said


def test_tags_come_line_by_line(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    run, table = trained("tag", some_sequences(kind="tag"), tmp_path)
    lines = predicted(capsys, str(run), "--file", str(table))
    assert lines[0] == "id,t,predicted,p(a),p(b)"
    assert_same(piped(monkeypatch, capsys, run, table.read_text()), lines)
    head, *rows = table.read_text().splitlines()
    first, second = rows[:5], [row for row in rows if row.startswith("s1,")][:5]
    mixed = [row for pair in zip(first, second, strict=True) for row in pair]
    answers = piped(monkeypatch, capsys, run, "\n".join([head, *mixed]))
    assert_same(answers[1::2], lines[1:6])  # each sequence has its own state


def test_forecasts_go_on_from_the_last_step(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    run, table = trained("forecast", some_series(), tmp_path, "--horizon", "3", "--period", "6")
    said = capsys.readouterr().out
    assert "last value" in said
    assert "seasonal naive, 6 steps" in said
    lines = predicted(capsys, str(run), "--file", str(table))
    assert lines[0] == "id,t,q0.1,q0.5,q0.9"
    assert [line.split(",")[:2] for line in lines[1:4]] == [["house 0", "60"], ["house 0", "61"], ["house 0", "62"]]
    assert len(lines) == 7
    assert piped(monkeypatch, capsys, run, table.read_text()) == lines


def test_predictions_are_written_and_not_replaced(tmp_path: Path, capsys: Capture) -> None:
    run, table = trained("regress", some_sequences(kind="regress"), tmp_path)
    out = tmp_path / "predictions.csv"
    arguments = [str(run), "--file", str(table), "--out", str(out)]
    assert f"24 sequences: {out}" in predicted(capsys, *arguments)
    assert out.read_text().startswith("id,predicted\ns0,")
    assert complaint(capsys, "predict", *arguments) == (
        f"expected a new file as --out, got {out}, which exists: --replace replaces it"
    )
    predicted(capsys, *arguments, "--replace")
    assert "expected --out to end in .csv or .tsv" in complaint(capsys, "predict", *arguments[:-1], "p.txt")
    stdin = complaint(capsys, "predict", str(run), "--file", "-", "--out", str(tmp_path / "new.csv"))
    assert "expected --out only with a file, got --file -" in stdin
    other = tmp_path / "other.csv"
    other.write_text("id,t,x\na,0,1\na,1,2\n")
    assert "expected a column y" in complaint(capsys, "predict", str(run), "--file", str(other))


def test_a_budget_tries_several_settings(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnTask, "variants", lambda task, config: variants(config)[:2])
    run, _ = trained("classify", some_sequences(), tmp_path, "--budget", "1h", "--updates", "2")
    assert "2 of 2: validation loss" in capsys.readouterr().out
    (other,) = (run / "tries").iterdir()
    assert main(["compare", str(run), str(other), "--out", str(tmp_path / "c.png")]) == 0


def test_other_runs_have_no_predictions(tmp_path: Path, capsys: Capture) -> None:
    options = ["--length=4", "--valid-size=8", "--test-size=8"]
    assert main(["train", "copy", *TINY, *options, "--out", str(tmp_path / "copy")]) == 0
    said = complaint(capsys, "predict", str(tmp_path / "copy"), "--file", "x.csv")
    assert said == f"expected a run on your own sequences, got {tmp_path / 'copy'}, which is one on copy"


def test_a_missing_file_is_told_before_anything_else(tmp_path: Path, capsys: Capture) -> None:
    assert "expected the file of your data" in complaint(capsys, "train", "classify")
    missing = complaint(capsys, "train", "classify", "--file", str(tmp_path / "no.csv"))
    assert str(tmp_path / "no.csv") in missing
