"""The rows of the factorized paper on YouTube-8M, in the task and in docs/youtube8m.md."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from slimrnn import LSTM, BlockDiagonal, hidden_size_for, summary
from slimrnn.tasks import YouTube8MTask, config_from_dict, config_to_dict

PAGE = Path(__file__).parents[2] / "docs" / "youtube8m.md"


def test_the_papers_nets_have_their_sizes() -> None:
    rows = {row.name.removeprefix("youtube-8m-"): row for row in YouTube8MTask.papers()}
    assert list(rows) == ["lstm", "factorized-small", "factorized-big"]
    layers, memory = {}, {}
    for name, row in rows.items():
        assert config_from_dict(config_to_dict(row.config)) == row.config
        with torch.device("meta"):
            count = summary(row.config.task.model(row.config.model))
        layers[name], memory[name] = sum(layer.total for layer in count.layers), row.config.model.hidden
        assert row.note.startswith(f"{count.total:,} parameters, {layers[name]:,} without the read-out; ")
        assert f"| {layers[name]:,} | {count.total:,} | {row.bound}, {row.claim[-5:]} |" in PAGE.read_text()
    assert layers["lstm"] == 4 * (1024 * (1152 + 1024 + 1)) + 4 * (1024 * (1024 + 1024 + 1))
    assert layers["factorized-small"] / layers["lstm"] == pytest.approx(1 / 4, rel=2e-3)
    assert memory["factorized-small"] == memory["lstm"] < memory["factorized-big"]
    blocks = BlockDiagonal(4)
    largest = hidden_size_for(layers["lstm"], LSTM, 1152, structure=blocks, input_structure=blocks, num_layers=2)
    assert memory["factorized-big"] == largest
    assert [row.criterion for row in rows.values()] == [f"test hit_at_1 ≥ {hit}" for hit in (0.645, 0.719, 0.809)]
    assert [row.claim.partition(", ")[2] for row in rows.values()] == ["PERR 0.573", "PERR 0.604", "PERR 0.641"]
