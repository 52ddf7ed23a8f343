"""The generators draw the processes that they say: their covariances, means and ends; and they refuse what is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from slimrnn.analysis.time_series import processes
from slimrnn.analysis.time_series.series import Array

CASES: dict[str, tuple[Callable[..., Array], Callable[..., Array], float]] = {
    **{
        f"fgn {hurst}": (processes.fractional_gaussian_noise, processes.fgn_autocovariances, hurst)
        for hurst in (0.2, 0.5, 0.8)
    },
    **{f"arfima {d}": (processes.arfima, processes.arfima_autocovariances, d) for d in (-0.3, 0.0, 0.3)},
    **{f"ar1 {phi}": (processes.ar1, processes.ar1_autocovariances, phi) for phi in (-0.7, 0.0, 0.9)},
}


@pytest.mark.parametrize("name", CASES)
def test_covariances_between_all_steps_are_the_theoretical_ones(name: str) -> None:
    """All T (T + 1) / 2 of them, ends included: a warm-up or a wrapped circle would show."""
    draw, autocovariances, parameter = CASES[name]
    steps, series = 12, 100_000
    drawn = draw(parameter, steps, seed=1, series=series)
    theory = autocovariances(parameter, steps)[np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))]
    spread = np.sqrt((np.outer(np.diag(theory), np.diag(theory)) + theory**2) / series)
    assert (np.abs(drawn @ drawn.T / series - theory) < 4.5 * spread).all()
    assert (np.abs(drawn.mean(1)) < 4.5 * np.sqrt(np.diag(theory) / series)).all()


def test_fgn_autocovariances_are_the_definition() -> None:
    k = np.arange(50.0)
    expected = (np.abs(k + 1) ** 1.4 - 2 * k**1.4 + np.abs(k - 1) ** 1.4) / 2
    np.testing.assert_allclose(processes.fgn_autocovariances(0.7, 49), expected, rtol=0, atol=1e-12)


def test_fgn_autocovariances_stay_exact_at_large_lags() -> None:
    """γ(k) → H (2H − 1) k^(2H − 2), where the definition is a difference of numbers near 10⁸."""
    assert processes.fgn_autocovariances(0.7, 10**6)[-1] == pytest.approx(0.7 * 0.4 * 1e6**-0.6, rel=1e-9)


def test_arfima_autocovariances_are_the_integral_of_the_spectrum() -> None:
    """γ(k) = ∫ |2 sin(λ/2)|^−2d cos(kλ) dλ / 2π, for d < 0, where midpoints converge quickly."""
    angles = (np.arange(200_000) + 0.5) * 2 * np.pi / 200_000
    for k, value in enumerate(processes.arfima_autocovariances(-0.4, 5)):
        assert value == pytest.approx(np.mean((2 * np.sin(angles / 2)) ** 0.8 * np.cos(k * angles)), abs=1e-7)


def test_ar1_autocovariances_are_those_of_statsmodels() -> None:
    """statsmodels 0.15.0: arma_acovf([1, -.7], [1], 5)."""
    stored = [1.96078431372549, 1.372549019607843, 0.96078431372549, 0.672549019607843, 0.47078431372549007]
    np.testing.assert_allclose(processes.ar1_autocovariances(0.7, 4), stored, rtol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_a_seed_repeats_and_a_generator_goes_on(name: str) -> None:
    draw, _, parameter = CASES[name]
    first, again = draw(parameter, 20, seed=3), draw(parameter, 20, seed=3)
    assert first.shape == (20,)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, again)
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(draw(parameter, 20, generator), first)
    assert (draw(parameter, 20, generator) != first).all()
    assert draw(parameter, 20, seed=3, series=4).shape == (20, 4)


def test_a_long_series_is_drawn_without_rounding_below_0() -> None:
    for draw, _, parameter in CASES.values():
        assert np.isfinite(draw(parameter, 2**15 + 1, seed=0)).all()
    assert np.isfinite(processes.ar1(0.999999, 1000, seed=0)).all()


def test_white_noise_is_standard_normal() -> None:
    drawn = processes.white_noise(1000, 0, series=100)
    assert drawn.shape == (1000, 100)
    assert abs(drawn.mean()) < 0.01
    assert drawn.var() == pytest.approx(1, abs=0.02)
    assert processes.white_noise(5, 0).shape == (5,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: processes.fractional_gaussian_noise(1.0, 10, 0), "expected H between 0 and 1, got 1.0"),
        (lambda: processes.fgn_autocovariances(float("nan"), 10), "expected H between 0 and 1, got nan"),
        (lambda: processes.arfima(0.5, 10, 0), "expected d between −0.5 and 0.5, got 0.5"),
        (lambda: processes.ar1(-1.0, 10, 0), "expected φ between −1 and 1, got -1.0"),
        (lambda: processes.ar1(0.5, 0, 0), "expected at least 1 step, got 0"),
        (lambda: processes.white_noise(0, 0), "expected at least 1 step, got 0"),
        (lambda: processes.white_noise(5, 0, series=0), "expected at least 1 series, got 0"),
        (lambda: processes.arfima_autocovariances(0.1, -1), "expected lags of at least 0, got -1"),
        (lambda: processes.gaussian_process(np.array([1.0]), 0), "expected finite autocovariances of shape"),
        (lambda: processes.gaussian_process(np.array([1.0, 2.0, 0.0]), 0), "expected autocovariances whose circulant"),
    ],
)
def test_what_is_no_process_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
