"""`slimrnn params`."""

from __future__ import annotations

import pytest

from slimrnn import GRU, Diagonal, LowRank, hidden_size_for
from slimrnn.cli import main

LOW_RANK = ["--model.cell", "gru", "--model.structure", "low-rank+diagonal", "--model.rank", "24"]


def test_table_counts_what_the_paper_counts(capsys: pytest.CaptureFixture[str]) -> None:
    kru = ["--model.cell", "rnn", "--model.nonlinearity", "modrelu", "--model.structure", "kronecker"]
    assert main(["params", "copy", *kru]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Kronecker([2] * 7)" in lines[1]
    assert lines[-1].split() == ["total", "5,314"]


def test_budget_finds_the_largest_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["params", "adding", "--budget", "50000", *LOW_RANK]) == 0
    hidden = hidden_size_for(50_000, GRU, 2, structure=LowRank(24) + Diagonal())
    assert f"largest state {hidden}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        (["adding", "--model.delays", "1", "2", "4"], 54),  # 3 (3 · 18 (18 + 2) + 4 · 18) = 4,536 parameters
        (["adding", "--model.delays", "1", "2", "--model.structure", "kronecker"], 256),
        (["adding", "--model.context-switching", "outputs", "--model.structure", "block-diagonal"], 24),
        (["reverse", "--model.delays", "1", "2"], 22),  # of the encoder and of the decoder
    ],
)
def test_budgets_know_groups_switches_and_decoders(
    options: list[str], hidden: int, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = ["--model.blocks", "2"] if "block-diagonal" in options else []
    assert main(["params", *options, *blocks, "--budget", "5000"]) == 0
    assert f"largest state {hidden}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "3"], "expected a budget that pays for some layer of this structure, got 3"),
        (["--model.rank", "3"], "expected rank only with low-rank, got rank 3 with dense"),
        (["--model.structure", "blok-diagonal"], "did you mean 'block-diagonal'?"),
        (["--model.hidden", "0"], "expected hidden_size to be at least 1, got 0"),
    ],
)
def test_impossible_nets_are_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["params", "copy", *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("slimrnn: expected ")
    assert said.err.rstrip().endswith(message)
