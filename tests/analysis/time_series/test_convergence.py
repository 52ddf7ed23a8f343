"""The verdict on the sum of the autocorrelations: right on processes and nets whose memory is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from slimrnn.analysis.time_series.convergence import Convergence, convergence
from slimrnn.analysis.time_series.processes import ar1, arfima, white_noise
from slimrnn.analysis.time_series.series import Array


def share(verdict: str, draw: Callable[[int], Array], trials: int) -> float:
    return float(np.mean([convergence(draw(seed)).verdict == verdict for seed in range(trials)]))


@pytest.mark.parametrize("phi", [-0.5, 0.5, 0.9])
def test_ar1_is_short(phi: float) -> None:
    assert share("short", lambda seed: ar1(phi, 2048, seed), 40) >= 0.95


def test_white_noise_is_short() -> None:
    assert share("short", lambda seed: white_noise(2048, seed), 40) >= 0.95


def test_arfima_is_long() -> None:
    assert share("long", lambda seed: arfima(0.3, 2048, seed), 40) >= 0.95


def test_what_never_decays_is_long() -> None:
    wave = np.sin(np.arange(1024))
    assert share("long", lambda seed: white_noise(1024, seed).cumsum(), 10) >= 0.9
    assert share("long", lambda seed: wave + white_noise(1024, seed), 10) == 1
    assert convergence(wave + white_noise(1024, 0)).lines > 0
    assert share("long", lambda seed: np.linspace(0, 3, 1024) + white_noise(1024, seed), 10) >= 0.9


@pytest.mark.parametrize(
    "x",
    [
        np.sin(2 * np.pi * 50 * np.arange(1000) / 1000),
        np.sin(np.arange(1000)),
        np.tile([1.0, -1.0], 500),
        np.linspace(0, 1, 1000),
        np.stack([np.sin(np.arange(1000)), np.cos(np.arange(1000)), np.sin(2.0 * np.arange(1000))], 1),
    ],
    ids=["a sinusoid", "one between two frequencies", "an alternation", "a ramp", "three sinusoids"],
)
def test_what_is_not_random_at_all_is_long(x: Array) -> None:
    found = convergence(x)
    assert found.verdict == "long"
    assert np.isfinite(found.evidence)


def test_time_constant_is_that_of_the_ar1() -> None:
    found = [convergence(ar1(0.9, 4096, seed)).time_constant for seed in range(10)]
    assert np.median(found) == pytest.approx(-1 / np.log(0.9), rel=0.1)


def test_d_is_that_of_the_arfima() -> None:
    assert np.mean([convergence(arfima(0.3, 2048, seed)).d for seed in range(10)]) == pytest.approx(0.3, abs=0.05)


def linear_net(radius: float, units: int, steps: int, seed: int) -> Array:
    """h ← radius · orthogonal · h + noise."""
    random = np.random.default_rng(seed)
    matrix = radius * np.linalg.qr(random.normal(size=(units, units)))[0]
    h, states = random.normal(size=units), []
    for noise in 0.1 * random.normal(size=(steps + 200, units)):
        h = matrix @ h + noise
        states.append(h)
    return np.array(states[200:])


def test_an_orthogonal_net_is_long_though_no_component_shows_it() -> None:
    states = linear_net(1.0, 32, 1024, 0)
    assert convergence(states).verdict == "long"
    assert share("long", lambda seed: linear_net(1.0, 16, 1024, seed), 5) == 1


def test_a_contracting_net_is_short() -> None:
    """Lemma 1.1 of the factorized paper: a spectral radius below 1."""
    assert share("short", lambda seed: linear_net(0.9, 16, 1024, seed), 10) >= 0.9


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_gated_nets_as_initialised_are_short(kind: type[nn.GRU] | type[nn.LSTM]) -> None:
    """Theorem 1.1 of the factorized paper."""
    torch.manual_seed(0)
    with torch.no_grad():
        states = kind(4, 24)(torch.randn(1100, 4))[0][76:]
    found = convergence(states)
    assert found.verdict == "short"
    assert found.time_constant < 20


def test_one_long_component_among_short_ones_is_found() -> None:
    def draw(seed: int) -> Array:
        x = white_noise(2048, seed, series=8)
        x[:, 0] += 2 * arfima(0.35, 2048, seed + 100)
        return np.asarray(x @ np.random.default_rng(seed).normal(size=(8, 8)))

    assert share("long", draw, 10) >= 0.9


def test_copies_and_scales_do_not_matter() -> None:
    x = arfima(0.3, 1024, 1)
    one, many = convergence(x), convergence(np.stack([x, 5 - 100 * x, x], 1))
    assert many.verdict == one.verdict
    assert many.evidence == pytest.approx(one.evidence, abs=1e-6)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Convergence("short", 8.0, 0.1, 9.5, 0, 1000), "short: exponentials fit best, and the slowest falls by e"),
        (Convergence("long", -9.0, 0.3, 9.5, 0, 1000), "long: a power law fits better than exponentials, with d"),
        (Convergence("long", 5.0, 0.3, 9.5, 2, 1000), "long: an oscillation that does not decay"),
        (Convergence("long", 5.0, 0.3, 90.0, 0, 1000), "long: the slowest exponential falls by e in 90 steps"),
        (Convergence("undecided", 1.0, 0.3, 9.0, 0, 1000), "undecided: exponentials and a power law fit about as well"),
    ],
)
def test_the_summary_says_why(found: Convergence, words: str) -> None:
    assert found.summary().startswith(words)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(300), "expected a series that varies"),
        (white_noise(255, 0), "expected a series of at least 256 steps, got 255"),
        (np.full(300, np.inf), "expected finite numbers in the series, got inf"),
        (np.zeros((2, 300, 2)), r"expected a series of shape \(T,\) or \(T, d\)"),
    ],
)
def test_bad_input_is_refused(x: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convergence(x)
