"""The estimators of d against known processes, other implementations, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from slimrnn.analysis.time_series.long_memory import LongMemory, dfa, fluctuations, gph, local_whittle
from slimrnn.analysis.time_series.processes import arfima, fractional_gaussian_noise, white_noise
from slimrnn.analysis.time_series.series import Array

ESTIMATORS: tuple[Callable[..., LongMemory], ...] = (local_whittle, gph, dfa)
TIMES = np.arange(256)
X = np.cumsum(np.sin(TIMES * TIMES % 7919 * 0.37)) * 0.1 + np.cos(TIMES * TIMES * TIMES % 104729 * 1.7)
Y = np.sin(TIMES * TIMES % 5113 * 0.91) + 0.5 * np.roll(X, 3)


@pytest.mark.parametrize("estimate", ESTIMATORS)
@pytest.mark.parametrize("d", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("process", ["fgn", "arfima"])
def test_errors_and_coverage_on_known_processes(process: str, d: float, estimate: Callable[..., LongMemory]) -> None:
    """Over 300 series: the mean error, the size of the standard error, and what the interval covers."""
    steps = 1024
    x = fractional_gaussian_noise(d + 0.5, steps, 5, 300) if process == "fgn" else arfima(d, steps, 5, 300)
    found = estimate(x)
    assert abs(found.d.mean() - d) < (0.03 if estimate is dfa else 0.012)
    assert found.d.std() == pytest.approx(found.error.mean(), rel=0.15)
    assert 0.91 < ((found.low <= d) & (d <= found.high)).mean() < 0.98
    np.testing.assert_allclose(found.hurst, found.d + 0.5)


@pytest.mark.parametrize("estimate", ESTIMATORS)
def test_errors_shrink_with_the_length(estimate: Callable[..., LongMemory]) -> None:
    errors = [np.abs(estimate(arfima(0.3, steps, 2, 100)).d - 0.3).mean() for steps in (256, 2048)]
    assert errors[1] < 0.7 * errors[0]


def test_local_whittle_minimises_robinsons_objective() -> None:
    m = 40
    frequencies = 2 * np.pi * np.arange(1, m + 1) / len(X)
    spectrum = np.array([abs((X * np.exp(-1j * w * np.arange(len(X)))).sum()) ** 2 for w in frequencies])

    def objective(d: float) -> float:
        return float(np.log(np.mean(frequencies ** (2 * d) * spectrum)) - 2 * d * np.log(frequencies).mean())

    d = float(local_whittle(X, m).d)
    around = [objective(d + step) for step in (-1e-3, -1e-4, 0, 1e-4, 1e-3)]
    assert min(around) == around[2]
    assert min(objective(other) for other in np.linspace(-0.5, 1, 301)) >= around[2] - 1e-12


def test_gph_is_the_fit_of_a_line() -> None:
    m = 40
    frequencies = 2 * np.pi * np.arange(1, m + 1) / len(X)
    spectrum = np.array([abs((X * np.exp(-1j * w * np.arange(len(X)))).sum()) ** 2 for w in frequencies])
    slope = np.polynomial.polynomial.polyfit(-2 * np.log(2 * np.sin(frequencies / 2)), np.log(spectrum), 1)[1]
    assert float(gph(X, m).d) == pytest.approx(slope, abs=1e-10)


def test_dfa_is_that_of_nolds() -> None:
    """nolds 0.6.3: dfa(x, nvals=[8, 16, 32, 64], overlap=False, order=order, fit_exp="poly")."""
    windows = (8, 16, 32, 64)  # divisors of T, so that counting from both ends gives each window twice
    assert float(dfa(X, windows).hurst) == pytest.approx(0.8484879661923138, abs=1e-10)
    assert float(dfa(Y, windows, order=2).hurst) == pytest.approx(0.4929828991245162, abs=1e-10)


def test_asymptotic_standard_errors() -> None:
    """1/(2√m) and π/√(24m), from which the finite forms differ by a few per cent at m = 2000."""
    x = white_noise(16_384, 0)
    assert float(local_whittle(x, 2000).error) == pytest.approx(1 / (2 * 2000**0.5), rel=0.02)
    assert float(gph(x, 2000).error) == pytest.approx(np.pi / (24 * 2000) ** 0.5, rel=0.02)


@pytest.mark.parametrize("estimate", ESTIMATORS)
def test_nothing_depends_on_scale_and_mean(estimate: Callable[..., LongMemory]) -> None:
    x = arfima(0.2, 512, 1)
    np.testing.assert_allclose(estimate(1e4 * x - 1e5).d, estimate(x).d, rtol=0, atol=1e-8)


@pytest.mark.parametrize("estimate", ESTIMATORS)
def test_components_are_estimated_one_by_one_and_pooled(estimate: Callable[..., LongMemory]) -> None:
    x = arfima(0.3, 1024, 7, series=16)
    found = estimate(x)
    assert found.d.shape == found.error.shape == found.low.shape == (16,)
    np.testing.assert_allclose(found.d[3], estimate(x[:, 3]).d, rtol=0, atol=1e-12)
    assert estimate(x[:, 3]).pooled is None
    assert found.pooled is not None
    assert abs(float(found.pooled.d) - 0.3) < 0.05
    assert float(found.pooled.error) < 0.5 * found.error.min()


@pytest.mark.parametrize("estimate", ESTIMATORS)
def test_copies_of_a_component_add_no_certainty(estimate: Callable[..., LongMemory]) -> None:
    x = arfima(0.3, 1024, 8)
    copies = estimate(np.stack([x, -2 * x, x + 1], axis=1))
    assert copies.pooled is not None
    np.testing.assert_allclose(copies.pooled.d, estimate(x).d, rtol=0, atol=1e-8)
    np.testing.assert_allclose(copies.pooled.error, estimate(x).error, rtol=1e-6)


def test_pooled_intervals_cover() -> None:
    """Of 200 groups of four components, two of which are correlated."""
    drawn = arfima(0.2, 512, 9, series=800).reshape(512, 200, 4)
    drawn[:, :, 1] = 0.8 * drawn[:, :, 0] + 0.6 * drawn[:, :, 1]
    for estimate in ESTIMATORS:
        pooled = [estimate(drawn[:, group]).pooled for group in range(200)]
        covered = [float(one.low) <= 0.2 <= float(one.high) for one in pooled if one is not None]
        assert len(covered) == 200
        assert np.mean(covered) > 0.9


def test_a_random_walk_has_d_near_1() -> None:
    walk = white_noise(4096, 3, 50).cumsum(0)
    assert local_whittle(walk).d.mean() == pytest.approx(1, abs=0.06)
    assert dfa(walk).d.mean() == pytest.approx(1, abs=0.06)


def test_tensors_and_lower_precision_are_taken() -> None:
    x = arfima(0.2, 256, 1)
    tensor = torch.tensor(x, requires_grad=True)
    assert float(local_whittle(tensor).d) == float(local_whittle(x).d)
    assert float(local_whittle(tensor.bfloat16()).d) == pytest.approx(float(local_whittle(x).d), abs=0.01)


def test_fluctuations_of_a_line_of_windows() -> None:
    """A summed series that is a polynomial in each window leaves nothing; with a window left over, both ends count."""
    assert fluctuations(X, (8, 16, 32)).shape == (3,)
    assert fluctuations(np.stack([X, Y], 1), (8, 16, 32)).shape == (3, 2)
    profile = np.cumsum(X[:250] - X[:250].mean())
    squares = []
    for start in [*range(0, 192, 64), *range(250 - 192, 250, 64)]:
        piece, times = profile[start : start + 64], np.arange(64)
        line = np.polynomial.Polynomial.fit(times, piece, 1)
        squares.append((piece - line(times)) ** 2)
    assert fluctuations(X[:250], (16, 32, 64))[2] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-10)


def bad(position: int, value: float) -> Array:
    x = white_noise(100, 0)
    x[position] = value
    return x


@pytest.mark.parametrize("estimate", ESTIMATORS)
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones(100), "expected a series that varies, got a constant component 0 of 1"),
        (np.stack([white_noise(100, 0), np.full(100, 0.1)], 1), "got a constant component 1 of 2"),
        (bad(3, np.nan), "expected finite numbers in the series, got nan"),
        (bad(3, -np.inf), "expected finite numbers in the series, got -inf"),
        (white_noise(63, 0), "expected a series of at least 64 steps, got 63"),
        (np.zeros((100, 2, 2)), r"expected a series of shape \(T,\) or \(T, d\), got \(100, 2, 2\)"),
        (np.zeros((100, 0)), r"expected a series of shape \(T,\) or \(T, d\), got \(100, 0\)"),
        (np.array(3.0), r"expected a series of shape \(T,\) or \(T, d\), got \(\)"),
        (1j * white_noise(100, 0), "expected a series of real numbers, got complex128"),
        (np.array(["a"] * 100), "expected a series of real numbers"),
    ],
)
def test_bad_series_are_refused(x: Any, message: str, estimate: Callable[..., LongMemory]) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: local_whittle(x, 7), "expected a bandwidth from 8 to 127, got 7"),
        (lambda x: gph(x, 128), "expected a bandwidth from 8 to 127, got 128"),
        (lambda x: dfa(x, (4, 8)), "expected at least 3 different window lengths, got 2"),
        (lambda x: dfa(x, (3, 8, 16)), "expected window lengths from 4 to 128, got 3"),
        (lambda x: dfa(x, (8, 16, 129)), "expected window lengths from 4 to 128, got 129"),
        (lambda x: dfa(x, order=6), "expected an order of the trend from 0 to 5, got 6"),
        (lambda x: local_whittle(x, level=1.0), "expected a level between 0 and 1, got 1.0"),
        (lambda x: local_whittle(np.tile([1.0, -1.0], 128)), "expected power at every frequency"),
        (lambda x: gph(np.tile([1.0, -1.0], 128)), "expected power at every frequency"),
    ],
)
def test_bad_settings_are_refused(call: Callable[[Array], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(X)
