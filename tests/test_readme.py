"""The README's first example prints what the README says, and the numbers of its first screen have a source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from slimrnn import GRU, Diagonal, LowRank
from slimrnn.ops import resolve_backend


def test_first_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    found = re.search(r"```python\n(?P<code>.*?)```\n\n```\n(?P<output>.*?)```", text, re.DOTALL)
    assert found
    exec(found["code"], {})
    shown = found["output"]
    if resolve_backend("auto") == "reference":
        shown = shown.replace("backend='native', runs_as='compiled'", "backend='reference'")
    assert capsys.readouterr().out == shown


def test_a_cell_in_ten_lines_runs_in_the_core() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    code = text.partition("**Your own cell is ten lines of Python**")[2].partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["rnn"].runs_as != "reference" or resolve_backend("auto") == "reference"
    assert names["rnn"](torch.zeros(2, 5, 10))[0].shape == (2, 5, 128)


def test_numbers_of_the_first_screen_come_from_its_sources() -> None:
    project = Path(__file__).parents[1]
    readme = (project / "README.md").read_text()
    claims = " ".join(readme.partition("- **Faster:**")[2].partition("```")[0].split())
    assert "5.9× the speed of `nn.GRU` with 39 % of its parameters" in claims
    assert "| low-rank 24 + diagonal GRU | 128, 20, 784, 1 | dense `nn.GRU` | 5.9 |" in readme
    timed = re.findall(r"^\|.*", readme.partition("## Fast on CPU")[2].partition("## Results")[0], re.M)
    assert len(timed) > 5
    assert set(timed) <= set((project / "docs/benchmarks.md").read_text().splitlines())
    slim = GRU(1, 128, structure=LowRank(24) + Diagonal(), reset="before")
    assert round(slim.num_parameters / sum(p.numel() for p in nn.GRU(1, 128).parameters()), 2) == 0.39

    forecasts = dict(
        re.findall(r"^  (\S+) +(1\.\d+, [\d,]+) parameters$", (project / "examples/README.md").read_text(), re.M)
    )
    assert forecasts == {"torch.nn.LSTM": "1.02, 69,120", "slimrnn.LSTM": "1.03, 11,776"}
    assert "11,776 parameters instead of 69,120, and nearly the same error: 1.03 against 1.02" in claims

    passed = re.findall(
        r"^\| `slimrnn reproduce copy-2000-(\w+)` .*\| \*\*passed\*\*.*\| ([\d,]+)(?: \(.+\))? \|$",
        (project / "RESULTS.md").read_text(),
        re.M,
    )
    assert {("kru", "5,314"), ("lstm", "72,458")} <= set(passed)
    assert "5,314 parameters recall ten symbols after 2,000 blank steps; an LSTM with 72,458" in claims
