"""Nets and learning rates that several experiments of the KRU paper share."""

from __future__ import annotations

from slimrnn.training.config import ModelConfig

UNITARY_RATE = 1e-3
"""Learning rate of a full unitary matrix, relative to the other weights. It acts on the state at all T steps, so it
has to change slowly: Wisdom et al. 2016 publish 1e-6 next to 1e-3 for MNIST."""


def kru(factors: int) -> ModelConfig:
    """A KRU with 2^factors units."""
    return ModelConfig("rnn", 2**factors, "kronecker", factors=(2,) * factors, nonlinearity="modrelu")


def full_unitary(hidden: int) -> ModelConfig:
    """A full-capacity uRNN (Wisdom et al. 2016)."""
    return ModelConfig("rnn", hidden, "full-unitary", nonlinearity="modrelu")


def unitary_product(hidden: int) -> ModelConfig:
    """A uRNN (Arjovsky et al. 2016)."""
    return ModelConfig("rnn", hidden, "unitary-product", nonlinearity="modrelu")
