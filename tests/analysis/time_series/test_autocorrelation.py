"""The norms of autocorrelations against their definition, statsmodels and known processes; their bands; bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from slimrnn.analysis.time_series import autocorrelation
from slimrnn.analysis.time_series.autocorrelation import autocorrelation_norms
from slimrnn.analysis.time_series.processes import ar1, ar1_autocovariances, arfima, arfima_autocovariances, white_noise
from slimrnn.analysis.time_series.series import Array

TIMES = np.arange(256)
X = np.cumsum(np.sin(TIMES * TIMES % 7919 * 0.37)) * 0.1 + np.cos(TIMES * TIMES * TIMES % 104729 * 1.7)
Y = np.sin(TIMES * TIMES % 5113 * 0.91) + 0.5 * np.roll(X, 3)


def by_definition(x: Array, lags: int) -> Array:
    z = (x - x.mean(0)) / x.std(0)
    pairs = [sum(np.outer(z[t], z[t + k]) for t in range(len(z) - k)) / len(z) for k in range(lags + 1)]
    return np.array([np.linalg.norm(matrix, 2) for matrix in pairs])


def test_one_component_is_the_acf_of_statsmodels() -> None:
    """statsmodels 0.15.0: acf(X, nlags=5, fft=False), and lags 50 and 200 of acf(X, nlags=200)."""
    stored = [1.0, 0.49798555233229297, 0.5092163229435839]
    stored += [0.4456850049318812, 0.48106216136738367, 0.42976954593441213]
    found = autocorrelation_norms(X, 200, resamples=0).norms
    np.testing.assert_allclose(found[:6], stored, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[[50, 200]], [0.0035153370686299926, 0.2065871186784646], rtol=0, atol=1e-12)


@pytest.mark.parametrize("lags", [5, 150])  # by matrix products, and by Fourier transform
def test_entries_are_the_ccf_of_statsmodels(lags: int) -> None:
    """statsmodels 0.15.0: ccf(Y, X, adjusted=False)[:6] is X before Y, ccf(X, Y, adjusted=False)[:6] Y before X."""
    later_y = [0.26559059565983556, 0.28871014331473155, 0.29320085539646096]
    later_y += [0.5735210004496909, 0.30674858968575275, 0.3334844788299377]
    later_x = [0.2655905956598355, 0.29079115317906623, 0.21021655681060725]
    later_x += [0.2850740229051974, 0.2394795936282589, 0.3191412143447693]
    found = autocorrelation._correlations(np.stack([X, Y], 1), np.ones(256), lags)
    np.testing.assert_allclose(found[:6, 0, 1], later_y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[:6, 1, 0], later_x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lags", [5, 128, 129, 199])
@pytest.mark.parametrize("width", [1, 4])
def test_norms_are_the_definition(width: int, lags: int) -> None:
    x = ar1(0.8, 200, 0, series=width) @ np.random.default_rng(0).normal(size=(width, width))
    found = autocorrelation_norms(x, lags, resamples=0)
    np.testing.assert_allclose(found.norms, by_definition(x, lags), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.sums, np.cumsum(found.norms))
    assert found.lags.tolist() == list(range(lags + 1))


def test_norms_are_those_of_the_process() -> None:
    """A turn by 0.5 with decay 0.9: Cor(k) is 0.9ᵏ times a rotation, whose norm is 0.9ᵏ."""
    turn = 0.9 * np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    x, noise = np.zeros((60_000, 2)), white_noise(60_000, 0, 2)
    for t in range(1, len(x)):
        x[t] = turn @ x[t - 1] + noise[t]
    found = autocorrelation_norms(x, 10, resamples=0).norms
    np.testing.assert_allclose(found, 0.9 ** np.arange(11), rtol=0, atol=0.03)


@pytest.mark.parametrize("width", [1, 3, 20])
def test_white_noise_stays_at_the_noise_level(width: int) -> None:
    """Its norms average to `noise`, so that the sum above the noise stays where it was at lag 0."""
    found = [autocorrelation_norms(white_noise(500, s, width), 100, resamples=0, seed=s) for s in range(10)]
    norms, noise = (np.mean([getattr(one, name)[1:] for one in found]) for name in ("norms", "noise"))
    assert norms == pytest.approx(noise, rel=0.04)
    rise = np.mean([one.sums_above_noise[-1] - one.norms[0] for one in found])
    assert abs(rise) < 0.04 * 100 * norms


def test_noise_of_one_component_is_the_mean_of_a_half_normal() -> None:
    found = autocorrelation_norms(white_noise(4000, 0), 1000, resamples=0)
    assert found.noise[1] == pytest.approx((2 / np.pi / 4000) ** 0.5, rel=0.15)
    assert found.noise[1000] / found.noise[1] == pytest.approx(0.75**0.5, rel=1e-3)
    assert found.noise[0] == 0


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_bands_cover_short_memory(phi: float) -> None:
    true = ar1_autocovariances(phi, 30) * (1 - phi**2)
    norms, sums = [], []
    for seed in range(40):
        found = autocorrelation_norms(ar1(phi, 1000, seed), 30, resamples=100, seed=seed)
        norms.append((found.norms_low <= true + 1e-12) & (true <= found.norms_high + 1e-12))
        sums.append(found.sums_low[-1] <= true.sum() <= found.sums_high[-1])
    assert 0.88 < np.mean(norms) <= 0.98
    assert np.mean(sums) > 0.85


def test_bands_of_several_components_cover_and_narrow() -> None:
    widths, true = [], 0.7 ** np.arange(21)
    for steps in (500, 4000):
        covered = []
        for seed in range(10):
            found = autocorrelation_norms(ar1(0.7, steps, seed, series=3), 20, resamples=50, seed=seed)
            covered.append((found.norms_low <= true + 1e-12) & (true <= found.norms_high + 1e-12))
        assert np.mean(covered) > 0.9
        widths.append((found.norms_high - found.norms_low)[5])
    assert widths[1] < 0.6 * widths[0]


def test_long_memory_is_still_correlated_where_short_memory_is_not() -> None:
    true = arfima_autocovariances(0.3, 50)[50] / arfima_autocovariances(0.3, 0)[0]
    drawn = [[draw(parameter, 20_000, s) for s in range(20)] for draw, parameter in ((arfima, 0.3), (ar1, 0.5))]
    long, short = (np.mean([autocorrelation_norms(x, 50, resamples=0).norms[40:] for x in xs]) for xs in drawn)
    assert long > 0.6 * true > 3 * short


def test_a_seed_repeats_and_tensors_are_taken() -> None:
    x = ar1(0.5, 300, 0, series=2)
    first, again, other = (autocorrelation_norms(x, 10, resamples=20, seed=seed) for seed in (1, 1, 2))
    tensor = autocorrelation_norms(torch.tensor(x), 10, resamples=20, seed=1)
    for name in ("norms", "noise", "norms_low", "sums_high"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
        np.testing.assert_array_equal(getattr(first, name), getattr(tensor, name))
    assert not np.array_equal(first.norms_high, other.norms_high)
    assert np.isnan(autocorrelation_norms(x, resamples=0).norms_low).all()
    assert len(autocorrelation_norms(x, resamples=0).lags) == 76


@pytest.mark.parametrize(
    ("x", "settings", "message"),
    [
        (np.ones(100), {}, "expected a series that varies, got a constant component 0 of 1"),
        (np.full((100, 2), np.nan), {}, "expected finite numbers in the series, got nan"),
        (white_noise(15, 0), {}, "expected a series of at least 16 steps, got 15"),
        (np.zeros((4, 100, 2)), {}, r"expected a series of shape \(T,\) or \(T, d\), got \(4, 100, 2\)"),
        (X, {"lags": 256}, "expected lags from 1 to 255, got 256"),
        (X, {"lags": 0}, "expected lags from 1 to 255, got 0"),
        (X, {"block": 257}, "expected a block from 1 to 256, got 257"),
        (X, {"resamples": 5}, "expected 0 resamples or at least 20, got 5"),
        (X, {"level": 0.0}, "expected a level between 0 and 1, got 0.0"),
    ],
)
def test_bad_input_is_refused(x: Array, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        autocorrelation_norms(x, **settings)


def test_a_lag_is_a_whole_number() -> None:
    call: Callable[..., object] = autocorrelation_norms
    with pytest.raises(TypeError):
        call(X, 2.5)


def test_a_series_that_rests_is_explained() -> None:
    series = np.zeros(400)
    series[:3] = [1.0, -1.0, 0.5]
    with pytest.raises(ValueError, match="expected a series that varies throughout"):
        autocorrelation_norms(series, lags=4)
    assert np.isfinite(autocorrelation_norms(series, lags=4, resamples=0).norms).all()
