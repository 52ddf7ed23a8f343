"""What a run shows: its curve, its picture, its progress."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from training_cases import tiny

from slimrnn.plotting import label_ends
from slimrnn.training import Config, ModelConfig, train
from slimrnn.training.config import plain
from slimrnn.training.curve import Curve, read_curve
from slimrnn.training.plots import Line, describe_model, describe_task, draw_curves, plot_curves
from slimrnn.training.progress import Progress, in_words


def test_numbers_come_back_to_the_bit(tmp_path: Path) -> None:
    curve = Curve(tmp_path / "curve.csv", -1)
    rows = [{"update": 0, "seconds": 0.1, "x": math.nan}, {"update": 10, "seconds": 0.5, "x": 1 / 3}]
    for row in rows:
        curve.write(row)
    read = read_curve(tmp_path / "curve.csv")
    assert read["update"] == [0, 10]
    assert math.isnan(read["x"][0])
    assert read["x"][1] == 1 / 3


def test_rows_after_the_checkpoint_are_dropped_and_torn_ones_too(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text("update,seconds,x\n0,0.0,1.0\n10,0.1,2.0\n20,0.2,3.0\n3")
    curve = Curve(path, 10)
    assert path.read_text() == "update,seconds,x\n0,0.0,1.0\n10,0.1,2.0\n"
    curve.write({"update": 20, "seconds": 0.3, "x": 4.0})
    assert read_curve(path)["x"] == [1, 2, 4]
    path.write_text("update,seconds,x\n0,0.0,1.0\n10,0")
    assert read_curve(path)["x"] == [1]  # of a run at work
    assert read_curve(tmp_path / "none.csv") == {}


def test_picture_of_any_numbers(tmp_path: Path) -> None:
    lines = [
        Line("nothing yet", [], []),
        Line("a point", [0], [0.0]),
        Line("gaps", [0, 1, 2], [math.nan, 1e-9, math.inf], pale=True, mark=1),
    ]
    plot_curves(lines, tmp_path / "a.png", "title", "subtitle", {"baseline": 0.5})
    plot_curves(lines[2:], tmp_path / "b.png", "title", baselines={"none": 1e-9})
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("a.png", "b.png"))


def test_labels_at_the_ends_of_curves_do_not_overlap() -> None:
    axes = Figure().add_subplot()
    axes.plot([0, 1], [0, 2])
    label_ends(
        axes, [("a\nof two lines", 1.0, "C0"), ("b", 1.01, "C1"), ("c\nof two lines", 1.0, "C2"), ("d", 0, "C3")]
    )
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == 6
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x0 >= axes.bbox.x1 for box in boxes)


def test_label_of_a_level_is_where_the_curves_leave_room() -> None:
    axes = Figure().add_subplot()
    draw_curves(axes, [Line("falling", [0, 5, 6, 10], [1.1, 1.1, 0, 0])], {"level": 1.0})
    box = axes.texts[0].get_window_extent()
    curve = axes.lines[0].get_path().transformed(axes.transData)
    assert not curve.intersects_bbox(box, filled=False)
    assert box.x0 > axes.transData.transform((6, 1))[0]  # at the right, where the curve is far away


def test_words_for_settings() -> None:
    config = tiny(model=ModelConfig("gru", 128, "low-rank+diagonal", rank=24, layers=2))
    assert describe_model(plain(config.model)) == "GRU, 2 layers of 128 units, low-rank 24 + diagonal"
    assert describe_model(plain(ModelConfig("rnn", 8, nonlinearity="modrelu"))) == "modrelu RNN, 8 units, dense"
    assert describe_task({"name": "word-copy", "repeats": 4, "a_b": True, "c": False}) == "word copy, repeats 4, a b"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (59.7, "1:00 min"), (185, "3:05 min"), (5400, "1:30 h")]
)
def test_durations(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_without_a_terminal_a_line_for_each_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tiny(tmp_path / "run", updates=20))
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()] == ["0", "10", "20"]
    assert "\x1b" not in shown.out
    assert "train 0." in shown.out.splitlines()[1]
    assert shown.err == ""


def test_on_a_terminal_one_line_is_rewritten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    progress = Progress(tiny(updates=1000))
    progress.begin(0)
    progress.update(1)
    progress.evaluated({"update": 500, "train/loss": 0.25, "valid/loss": 0.125})
    progress.say("something")
    progress.end()
    out = capsys.readouterr().out
    assert out.count("\n") == 2
    assert "━━━━━━━━━━━━──────────── 500/1,000  train 0.25  valid 0.125" in out
    assert "\r\x1b[Ksomething\n" in out


def test_a_run_without_updates_is_shown_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = train(tiny(tmp_path / "a", updates=1), quiet=True).directory / "final.safetensors"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    assert train(tiny(tmp_path / "b", updates=0, start_from=start)).ended == "finished"
    assert "━━━ 0/0  valid 0." in capsys.readouterr().out


def test_quiet_and_other_processes_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    config: Config = tiny()
    Progress(config, quiet=True).evaluated({"update": 1, "train/loss": 1.0})
    Progress(config, speaks=False).say("something")
    assert capsys.readouterr().out == ""
    Progress(config, quiet=True).say("something")
    assert capsys.readouterr().out == "something\n"
