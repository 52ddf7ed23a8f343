"""How much of the past a state holds.

By theory, for a Gaussian channel (factorized paper, prop. 1.4) and for a linear net (Jaeger 2001); by measurement, for
any layer: the past input x_{t−k} is decoded from h_t by ridge regression, and the share of its variance that this
explains, summed over the lags k, is the memory capacity. For independent inputs it is at most the number of units.

Shape suffixes: T time, B batch, I input width, F features (units, or twice that for a complex state), K lags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from slimrnn._checks import check_count, check_number
from slimrnn.analysis.memory._decoding import Decoding, decode
from slimrnn.analysis.model.trajectory import Layer, Lengths

Array = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Capacity:
    """r²_k of the input k steps before, for k = 0, 1, ...: the memory-capacity curve."""

    r2: Array  #: (K, I), of symbols (K, 1): share of the variance of x_{t−k} that a linear function of h_t explains
    total: float  #: memory capacity: their sum; of symbols see `memory_capacity`, of linear nets: over all lags
    features: int  #: numbers in h_t, the most that `total` can be
    accuracy: Array | None = None  #: (K): of symbols, the share decoded rightly
    chance: float | None = None  #: the share of the most frequent symbol
    trained_on: int = 0  #: steps the decoder was fitted to; 0 where the result is exact
    tested_on: int = 0  #: steps it was tested on

    def reach(self, threshold: float = 0.9) -> int:
        """How many inputs, the current one first, are decoded with an accuracy, or of numbers an r², of at least this
        in every channel: the first lag that falls short."""
        check_number("threshold", threshold)
        enough = (self.r2.min(1) if self.accuracy is None else self.accuracy) >= threshold
        return len(enough) if enough.all() else int(np.argmin(enough))


def gaussian_information(
    channels: int | ArrayLike, signal: float | ArrayLike = 1.0, noise: float | ArrayLike = 1.0
) -> Array:
    """I(h_t, tanh(W_x x_t + W_h h_t + b)) = d_h/2 · log(1 + η/σ), in nats (factorized paper, prop. 1.4).

    channels -- d_h; signal -- η, the variance of W_h h_t in every channel; noise -- σ, the variance of W_x x_t. Arrays
    go together as numpy broadcasts them. All channels must be alike and independent: W_h orthogonal up to a factor.
    The growth with d_h is linear where every further channel brings the same signal-to-noise ratio; where the power P
    of all together is fixed, signal = P/d_h, it levels off at P/(2σ). For other matrices: `channel_information`."""
    d, eta, sigma = (np.asarray(value, dtype=np.float64) for value in (channels, signal, noise))
    if not (np.isfinite(d).all() and (d >= 1).all() and (d == np.round(d)).all()):
        raise ValueError(f"expected whole numbers of channels, at least 1, got {channels!r}")
    if not (np.isfinite(eta).all() and (eta >= 0).all()):
        raise ValueError(f"expected a finite signal of at least 0, got {signal!r}")
    if not (np.isfinite(sigma).all() and (sigma > 0).all()):
        raise ValueError(f"expected finite noise above 0, got {noise!r}")
    return np.asarray(d / 2 * np.log1p(eta / sigma))


def channel_information(
    W: ArrayLike | Tensor, noise: ArrayLike | Tensor, signal: ArrayLike | Tensor | None = None
) -> float:
    """I(h, W h + ε) = ½ log det(1 + Σ_ε⁻¹ W Σ_h Wᵀ) in nats, for h ~ N(0, Σ_h) and ε ~ N(0, Σ_ε).

    This is theorem 1.2 of the factorized paper with the determinant that its text lacks. `noise` is Σ_ε, in a net
    W_x Cov(x) W_xᵀ; `signal` is Σ_h, by default 1. Information is infinite where noise leaves a direction out, as with
    fewer inputs than units: that is refused."""
    W, noise = _matrix("W", W), _matrix("noise", noise)
    signal = np.eye(W.shape[1]) if signal is None else _matrix("signal", signal)
    for name, given, size in (("noise", noise, W.shape[0]), ("signal", signal, W.shape[1])):
        if given.shape != (size, size) or not np.allclose(given, given.T):
            raise ValueError(f"expected {name} to be a symmetric matrix of shape {(size, size)}, got {given.shape}")
    power = np.linalg.eigvalsh(signal)
    if power[0] < -1e-10 * max(power[-1], 0) or power[-1] < 0:
        raise ValueError(f"expected signal to have no negative eigenvalue, got {power[0]}")
    strength, axes = np.linalg.eigh(noise)
    if strength[0] <= EPSILON * len(W) * strength[-1]:
        raise ValueError(f"expected noise of full rank, got a smallest eigenvalue of {strength[0]:.3g}")
    whitened = (axes / np.sqrt(strength)).T @ W
    ratios = np.linalg.eigvalsh(whitened @ signal @ whitened.T).clip(0)
    return float(np.log1p(ratios).sum() / 2)


def linear_capacity(
    W: ArrayLike | Tensor, v: ArrayLike | Tensor, lags: int = 100, *, steps: int | None = None, tolerance: float = 1e-12
) -> Capacity:
    """Exact for h_t = W h_{t−1} + v x_t with independent inputs of variance 1 (Jaeger 2001):

        r²_k = (W^k v)ᵀ Γ⁻¹ (W^k v),   Γ = Σ_k W^k v vᵀ (W^k)ᵀ = Cov(h).

    Summed over all lags this is tr(Γ⁻¹Γ): the rank of [v, Wv, W²v, ...], which is the number n of units unless v misses
    an invariant subspace. v is (n), or (n, I) for several inputs. A complex net counts as the real one of its real and
    imaginary parts, with 2n features.

    Γ exists where the spectral radius is below 1. With `steps` there are that many inputs and a state of 0 before
    them, for any W: then the lags 0 ... steps − 1 of an orthogonal net share the sum n.

    The rank is a numerical one: Γ is kept as a product R Rᵀ, and directions of the state that are weaker than
    `tolerance` of the strongest count as missing, as they would drown in the rounding of a real net."""
    W, v = _real_form(_matrix("W", W, complex=True), np.asarray(_array("v", v, complex=True)))
    check_count("lags", lags)
    radius = float(np.abs(np.linalg.eigvals(W)).max())
    if steps is None and radius >= 1 - 1e-9:
        raise ValueError(f"expected a spectral radius below 1, or steps for a finite past, got {radius:.6g}")
    if steps is not None:
        check_count("steps", steps)
        lags = min(lags, steps)
    R = _settled(W, v) if steps is None else _reachable(W, v, steps)[0]
    if not np.isfinite(R).all():
        raise ValueError(f"expected states that stay finite, got spectral radius {radius:.6g} over {steps} steps")
    axes, sizes, _ = np.linalg.svd(R, full_matrices=False)
    if not sizes[0] > 0:
        raise ValueError("expected v to have a number other than 0, got none")
    kept = sizes > tolerance * sizes[0]
    whiten = (axes[:, kept] / sizes[kept]).T
    r2, column = np.empty((lags, v.shape[1])), v
    for k in range(lags):
        r2[k] = ((whiten @ column) ** 2).sum(0)
        column = W @ column
    return Capacity(r2=r2, total=float(kept.sum()), features=len(W))


def memory_capacity(
    layer: Layer,
    x: Tensor | None = None,
    lengths: Lengths | None = None,
    *,
    lags: int = 100,
    steps: int = 20_000,
    scale: float = 1.0,
    symbols: bool = False,
    washout: int = 100,
    held_out: float = 0.3,
    ridge: float = 1e-10,
    seed: int = 0,
) -> Capacity:
    """How well x_{t−k}, k = 0 ... lags − 1, can be decoded linearly from the layer's output h_t.

    x as the layer takes it, or None: then `steps` independent inputs are drawn, uniform in ±scale, or with `symbols`
    one-hot with equal chances. Given inputs that are not independent can be decoded beyond any bound on the total.

    The decoder (ridge regression with an intercept; the penalty is `ridge` times the mean variance of a feature) is
    fitted to one part of the data and tested on the rest, the share `held_out`: the last sequences of a batch, or the
    last steps of a single sequence. r² is 1 − error/variance on that rest, not clipped: a lag without memory gives
    about −features/steps. Steps count from max(washout, lags − 1) on, the same for every lag.

    Symbols are decoded to the largest of their outputs; `total` is Σ_k (m − 1) · (share of variance explained), since m
    symbols vary in m − 1 directions. The layer runs in pieces: memory does not grow with `steps`."""
    _check_settings(lags=lags, steps=steps, scale=scale, washout=washout, held_out=held_out, ridge=ridge)
    how = Decoding(lags, max(washout, lags - 1), held_out, ridge, symbols)
    found = decode(layer, x, lengths, how, steps=steps, scale=scale, seed=seed)
    r2 = 1 - found.errors_KI / found.variances_KI
    return Capacity(
        r2=r2,
        total=float(r2.sum()) * (layer.input_size - 1 if symbols else 1),
        features=found.features,
        accuracy=found.hits_K / found.tested_on if symbols else None,
        chance=found.chance if symbols else None,
        trained_on=found.trained_on,
        tested_on=found.tested_on,
    )


def _check_settings(*, lags: int, steps: int, scale: float, washout: int, held_out: float, ridge: float) -> None:
    check_count("lags", lags)
    check_count("steps", steps)
    for name, number in (("scale", scale), ("washout", washout), ("held_out", held_out), ("ridge", ridge)):
        check_number(name, number)
    if not scale > 0 or not 0 < held_out < 1 or ridge < 0 or washout < 0:
        raise ValueError(
            "expected scale > 0, 0 < held_out < 1, ridge >= 0 and washout >= 0, "
            f"got {scale}, {held_out}, {ridge} and {washout}"
        )


def _reachable(W: Array, v: Array, steps: int) -> tuple[Array, Array]:
    """R with R Rᵀ = Σ_{k<steps} W^k v vᵀ (W^k)ᵀ, and W^steps: by doubling, and by QR, which does not square."""
    if steps == 1:
        return v, W
    R, power = _reachable(W, v, steps // 2)
    R, power = _joined(R, power @ R), power @ power
    return (_joined(v, W @ R), W @ power) if steps % 2 else (R, power)


def _settled(W: Array, v: Array) -> Array:
    """R of all steps: doubled until nothing is added."""
    R, power = v, W
    while np.linalg.norm(added := power @ R) > EPSILON * np.linalg.norm(R):
        R, power = _joined(R, added), power @ power
    return R


def _joined(A: Array, B: Array) -> Array:
    """R with R Rᵀ = A Aᵀ + B Bᵀ and no more columns than rows."""
    triangle: Any = np.linalg.qr(np.concatenate([A, B], 1).T, mode="r")
    return np.asarray(triangle.T)


def _real_form(W: NDArray[np.generic], v: NDArray[np.generic]) -> tuple[Array, Array]:
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"expected W to be a square matrix, got shape {W.shape}")
    v = v[:, None] if v.ndim == 1 else v
    if v.ndim != 2 or len(v) != len(W) or not v.shape[1]:
        raise ValueError(f"expected v of shape ({len(W)},) or ({len(W)}, inputs), got {v.shape}")
    if np.iscomplexobj(W) or np.iscomplexobj(v):
        return np.block([[W.real, -W.imag], [W.imag, W.real]]), np.concatenate([v.real, v.imag])
    return W.astype(np.float64), v.astype(np.float64)


def _matrix(name: str, given: ArrayLike | Tensor, complex: bool = False) -> Array:
    array = _array(name, given, complex)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"expected {name} to be a matrix, got shape {array.shape}")
    return array


def _array(name: str, given: ArrayLike | Tensor, complex: bool) -> Array:
    array = np.asarray(given.detach().cpu().resolve_conj().numpy() if isinstance(given, Tensor) else given)
    if array.dtype.kind not in ("fiuc" if complex else "fiu"):
        raise TypeError(f"expected {name} to hold {'' if complex else 'real '}numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers in {name}, got {array[~np.isfinite(array)][0]}")
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
