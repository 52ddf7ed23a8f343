"""How much work a diagnosis may do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What keeps a diagnosis quick."""

    sequences: int  # of the batch, those that are looked at
    lags: int  # of the gradients' reach
    exact: int  # numbers of a state up to which the reach is exact ...
    probes: int  # ... beyond, an estimate from that many random vectors
    series: int  # units whose dependence is looked at
    bootstraps: int  # drawings of the confidence bands
    capacity_steps: int  # random inputs that are decoded again
    capacity_features: int  # outputs beyond which the capacity is left out


QUICK = Limits(
    sequences=8,
    lags=500,
    exact=32,
    probes=8,
    series=32,
    bootstraps=100,
    capacity_steps=5_000,
    capacity_features=256,
)
THOROUGH = Limits(
    sequences=32,
    lags=10_000,
    exact=512,
    probes=64,
    series=128,
    bootstraps=500,
    capacity_steps=20_000,
    capacity_features=2_048,
)
