"""Structures as text, and back."""

from __future__ import annotations

import pytest

from slimrnn import BlockDiagonal, Dense, Diagonal, Householder, Kronecker, LowRank, Sparse, Structure
from slimrnn.errors import ConfigError
from slimrnn.training.config import ModelConfig
from slimrnn.training.models.sequence_model import build_layers, structure_from
from slimrnn.training.structure_texts import structure_text


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (Dense(), "dense"),
        (LowRank(3), "low-rank(3)"),
        (LowRank(3, tied=True) + Diagonal(), "tied-low-rank(3)+diagonal"),
        (BlockDiagonal(4), "block-diagonal(4)"),
        (Kronecker([(2, 4), 3]) + Sparse(0.5, seed=1), "kronecker(2x4,3)+sparse(0.5,1)"),
    ],
)
def test_texts_are_read_as_what_they_stand_for(spec: Structure, text: str) -> None:
    assert structure_text(spec) == text
    assert structure_from(ModelConfig(structure=text)) == spec


def test_layers_may_differ() -> None:
    text = structure_text([LowRank(2), LowRank(3, tied=True)])
    assert text == "low-rank(2), tied-low-rank(3)"
    assert build_layers(3, ModelConfig(hidden=8, layers=2, structure=text)).structure == (
        LowRank(2),
        LowRank(3, tied=True),
    )


def test_what_settings_cannot_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a structure that settings can name, got Householder"):
        structure_text(Householder(3))
