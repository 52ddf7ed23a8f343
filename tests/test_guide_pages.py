"""The examples of the guides run and print what the pages say."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pages import DOCS, check_examples, check_figures
from registry import needs_library
from slimrnn.analysis import measure_gates
from slimrnn.cells import Cell
from slimrnn.cells.base import Matvec, State
from slimrnn.cli import main
from slimrnn.layers import RecurrentStack
from slimrnn.tracing.stand_in import FUNCTIONS

# Nets that were trained on another machine score differently: an LSTM's nearest low-rank net has 0.89 to 0.93.
ROUNDING = 0.08

VOCABULARY = ("arithmetic", "functions", "choices")  # rows of the table of operations


def nearly_the_same(told: str, printed: str) -> bool:
    """The same words and whole numbers, and nearly the same decimal ones."""
    ours, theirs = (re.findall(r"\d+\.\d+", text) for text in (told, printed))
    close = all(abs(float(a) - float(b)) < ROUNDING for a, b in zip(ours, theirs, strict=False))
    return close and re.sub(r"\d+\.\d+", "#", told) == re.sub(r"\d+\.\d+", "#", printed)


def test_an_lstm_is_replaced_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("tutorial.md", capsys, nearly_the_same)


@needs_library
def test_the_core_runs_what_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("native.md", capsys)


def test_episodes_end_inside_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("reinforcement.md", capsys)


def test_learning_curves_are_those_of_the_page(tmp_path: Path) -> None:
    check_figures("reinforcement.md", "reinforcement.py", tmp_path)


@needs_library
def test_streams_share_a_pool_and_move_to_another(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("serving.md", capsys)


def test_own_files_are_read_or_refused_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("own-data-formats.md", capsys)


def test_structures_cost_and_reach_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("choosing.md", capsys)


def test_the_script_makes_the_figure_of_the_page(tmp_path: Path) -> None:
    check_figures("choosing.md", "choosing.py", tmp_path)


@needs_library
def test_a_structure_and_a_cell_in_one_file_each(capsys: pytest.CaptureFixture[str]) -> None:
    check_examples("extending.md", capsys)


def test_the_core_has_the_operations_of_its_page() -> None:
    table = (DOCS / "native.md").read_text().partition("## What a step may contain")[2].partition("Numbers of")[0]
    rows = [row for row in table.splitlines() if row.split("|")[1:2] and row.split("|")[1].strip() in VOCABULARY]
    assert len(rows) == len(VOCABULARY)
    named = re.findall(r"`([a-z_0-9]+)`", " ".join(rows))
    assert len(named) > 25
    assert not set(named) - FUNCTIONS.keys()


@pytest.mark.parametrize(
    ("module", "marker"), [("circulant", "This is all of `circulant.py`"), ("minimal", "All of `mi")]
)
def test_the_command_line_takes_what_the_page_has_in_a_module(
    module: str, marker: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "extending.md").read_text()
    code = page.partition(marker)[2].partition("```python\n")[2].partition("```")[0]
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    found = re.search(rf"\$ python -m slimrnn (?P<options>.+ {module}:.+)\n(?P<printed>(?:.+\n)+?)```", page)
    assert found
    main(shlex.split(found["options"]))
    assert capsys.readouterr().out == found["printed"]
    monkeypatch.delitem(sys.modules, module)  # which is there now


def test_gates_of_a_cell_of_your_own_are_not_guessed() -> None:
    class Averaging(Cell):
        gates = ("h",)

        def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
            return ((wx_BGH + matvec(state[0])).squeeze(-2) / 2,)

    layer = RecurrentStack(Averaging, 2, 4)
    with pytest.raises(TypeError, match=r"expected the cell of an RNN, GRU or LSTM, .* got Averaging"):
        measure_gates(layer, torch.randn(20, 3, 2))


def test_estimators_learn_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    check_examples("estimators.md", capsys, nearly_the_same)
