"""Linear decoding of past inputs from the output of a layer, in pieces of time.

Shape suffixes: T time, B batch, I input width, F features, K lags, N rows (steps of all sequences that count).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimrnn.analysis.model.trajectory import OURS, Layer, Lengths, evaluating
from slimrnn.layers.inputs import check_lengths
from slimrnn.layers.stack import RecurrentStack
from slimrnn.ops.reference import valid_steps

Array = NDArray[np.float64]
Source = Callable[[int, int], Tensor]  # inputs (T, B, I) from one step to another, asked for in order

PIECE = 4096  # steps at most
NUMBERS = 2**21  # targets of a piece, about


class Decoding(NamedTuple):
    lags: int
    first: int  # step that counts
    held_out: float
    ridge: float
    symbols: bool


@dataclass(eq=False)
class Decoded:
    """Sums over the rows that were held out."""

    errors_KI: Array
    variances_KI: Array
    hits_K: Array
    chance: float
    features: int
    trained_on: int
    tested_on: int


class _Data(NamedTuple):
    source: Source
    steps: int
    lengths: NDArray[np.int64]  # (B)


class _Rows(NamedTuple):
    h: Array  # (N, F)
    past: Array  # (N, K, I): x_t, x_{t−1}, ...


class _Map(NamedTuple):
    weight: Array  # (F, K·I)
    h_mean: Array
    past_mean: Array


def decode(
    layer: Layer, x: Tensor | None, lengths: Lengths | None, how: Decoding, *, steps: int, scale: float, seed: int
) -> Decoded:
    """Fits a decoder to one part of the data and tests it on the other."""
    _check_layer(layer)
    if x is None:
        if lengths is not None:
            raise ValueError("expected lengths only with x, got them without")
        data = _Data(_drawn(layer, scale, how.symbols, seed), steps, np.array([steps]))
    else:
        data = _given(layer, x, lengths, how.symbols)
    if data.steps <= how.first:
        raise ValueError(f"expected more than the {how.first} steps of lags and washout, got {data.steps}")
    with evaluating(layer), torch.no_grad():
        if len(data.lengths) == 1:
            usable = data.steps - how.first
            cut = how.first + usable - round(usable * how.held_out)
            pieces, count = _pieces(layer, data, how, cut)
            fitted, trained_on = _fit(islice(pieces, count), how.ridge)
            return _test(pieces, fitted, trained_on, how)
        kept = len(data.lengths) - max(1, round(len(data.lengths) * how.held_out))
        fitted, trained_on = _fit(_pieces(layer, _part(data, slice(kept)), how)[0], how.ridge)
        return _test(_pieces(layer, _part(data, slice(kept, None)), how)[0], fitted, trained_on, how)


# --- data -------------------------------------------------------------------------------------------------


def _check_layer(layer: Layer) -> None:
    if not isinstance(layer, (RecurrentStack, *OURS)):
        kind = f"{type(layer).__module__}.{type(layer).__qualname__}"
        raise TypeError(f"expected an RNN, GRU or LSTM of slimrnn or torch.nn, got {kind}")
    if layer.bidirectional:
        raise ValueError("expected one direction, got a bidirectional layer, whose output knows the future as well")


def _drawn(layer: Layer, scale: float, symbols: bool, seed: int) -> Source:
    random, some, width = np.random.default_rng(seed), next(layer.parameters()), layer.input_size
    if symbols and width < 2:
        raise ValueError(f"expected input_size of at least 2 symbols, got {width}")

    def draw(start: int, stop: int) -> Tensor:
        shape = (stop - start, 1)
        drawn = np.eye(width)[random.integers(width, size=shape)] if symbols else None
        drawn = random.uniform(-scale, scale, (*shape, width)) if drawn is None else drawn
        return torch.as_tensor(drawn).to(some)

    return draw


def _given(layer: Layer, x: Tensor, lengths: Lengths | None, symbols: bool) -> _Data:
    if not isinstance(x, Tensor):
        raise TypeError(f"expected x to be a tensor, got {type(x).__name__}")
    if x.dim() not in (2, 3) or x.shape[-1] != layer.input_size or 0 in x.shape:
        raise ValueError(f"expected x with 2 or 3 axes, the last of {layer.input_size}, got {tuple(x.shape)}")
    x = x.unsqueeze(1) if x.dim() == 2 else x.transpose(0, 1) if layer.batch_first else x
    steps, batch = x.shape[:2]
    ends = torch.full((batch,), steps) if lengths is None else check_lengths(lengths, steps, batch, x.device)
    valid = valid_steps(steps, ends.to(x.device))
    rows, x = x[valid.squeeze(-1)], x.masked_fill(~valid, 0)
    if not torch.isfinite(rows).all():
        raise ValueError(f"expected finite numbers in x, got {rows[~torch.isfinite(rows)][0]}")
    if symbols and not bool((((rows == 0) | (rows == 1)).all(-1) & (rows.sum(-1) == 1)).all()):
        raise ValueError("expected one-hot rows of x with symbols=True, got others")
    constant = (rows == rows[0]).all(0)
    if bool(constant.all() if symbols else constant.any()):
        raise ValueError(f"expected inputs that vary, got a constant in channel {int(constant.int().argmax())}")
    return _Data(lambda start, stop: x[start:stop], steps, ends.cpu().numpy())


def _part(data: _Data, which: slice) -> _Data:
    return data._replace(source=lambda start, stop: data.source(start, stop)[:, which], lengths=data.lengths[which])


def _pieces(layer: Layer, data: _Data, how: Decoding, cut: int | None = None) -> tuple[Iterator[_Rows], int]:
    """Outputs and past inputs, piece by piece, and how many pieces lie before the cut."""
    batch, lags = len(data.lengths), how.lags
    size = max(1, min(PIECE, NUMBERS // (batch * lags * layer.input_size)))
    cuts = [0, data.steps] if cut is None else [0, cut, data.steps]
    bounds = [range(a, b, size) for a, b in pairwise(cuts)]
    spans = [(a, min(a + size, part.stop)) for part in bounds for a in part]

    def run() -> Iterator[_Rows]:
        state: Any = None
        before = np.zeros((lags - 1, batch, layer.input_size))
        for start, stop in spans:
            x = data.source(start, stop)
            given = x.transpose(0, 1) if layer.batch_first else x
            output, state = layer(given) if state is None else layer(given, state)
            output = output.transpose(0, 1) if layer.batch_first else output
            line = np.concatenate([before, x.double().cpu().numpy()])
            before = line[len(line) - lags + 1 :]
            times = np.arange(start, stop)[:, None]
            counted = (times >= how.first) & (times < data.lengths)
            windows = np.lib.stride_tricks.sliding_window_view(line, lags, 0)[..., ::-1]  # (T, B, I, K)
            yield _Rows(output.double().cpu().numpy()[counted], windows[counted].swapaxes(1, 2))

    return run(), len(bounds[0])


# --- regression -------------------------------------------------------------------------------------------


def _fit(pieces: Iterator[_Rows], ridge: float) -> tuple[_Map, int]:
    """Ridge regression with an intercept, from sums over the pieces (around a place close to the means)."""
    place: tuple[Array, Array] | None = None
    count, sums = 0, [np.zeros(()) for _ in range(4)]
    for rows in pieces:
        if not len(rows.h):
            continue
        past = rows.past.reshape(len(rows.h), -1)
        place = (rows.h.mean(0), past.mean(0)) if place is None else place
        h, past = rows.h - place[0], past - place[1]
        count += len(h)
        sums = [total + new for total, new in zip(sums, (h.sum(0), past.sum(0), h.T @ h, h.T @ past), strict=True)]
    if place is None or count <= len(place[0]):
        least = 1 if place is None else len(place[0]) + 1
        raise ValueError(f"expected at least {least} steps to fit to, beyond lags and washout, got {count}")
    h_mean, past_mean, gram, cross = (total / count for total in sums)
    sizes, axes = np.linalg.eigh(gram - np.outer(h_mean, h_mean))
    if not np.isfinite(sizes).all() or not sizes[-1] > 0:
        raise ValueError("expected finite outputs that vary, got others")
    sizes = sizes.clip(0) + ridge * sizes.clip(0).mean()
    inverse = np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 1e-15 * sizes[-1])
    weight = axes @ (inverse[:, None] * (axes.T @ (cross - np.outer(h_mean, past_mean))))
    return _Map(weight, h_mean + place[0], past_mean + place[1]), count


def _test(pieces: Iterator[_Rows], fitted: _Map, trained_on: int, how: Decoding) -> Decoded:
    shape = (how.lags, len(fitted.past_mean) // how.lags)
    errors, moments, squares, current = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape[1])
    count, hits = 0, np.zeros(how.lags)
    for rows in pieces:
        past = rows.past - fitted.past_mean.reshape(shape)
        guess = ((rows.h - fitted.h_mean) @ fitted.weight).reshape(past.shape)
        count += len(past)
        errors += ((past - guess) ** 2).sum(0)
        moments += past.sum(0)
        squares += (past**2).sum(0)
        if how.symbols:
            guess += fitted.past_mean.reshape(shape)
            hits += (guess.argmax(-1) == rows.past.argmax(-1)).sum(0)
            current += rows.past[:, 0].sum(0)
    if count < 2:
        raise ValueError(f"expected at least 2 steps to test on, beyond lags and washout, got {count}")
    variances = squares - moments**2 / count
    if how.symbols:  # one of them may be missing here, so all together
        errors, variances = errors.sum(1, keepdims=True), variances.sum(1, keepdims=True)
    if not (variances > 1e-12 * squares.max()).all():
        raise ValueError("expected inputs that vary in the steps to test on, too, got a constant")
    return Decoded(errors, variances, hits, float(current.max() / count), len(fitted.h_mean), trained_on, count)
