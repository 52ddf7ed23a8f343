"""RTNeural's JSON, read and run in numpy, written after its C++: model_loader.h, gru.h, lstm.h and activation.h.

RTNeural is C++ to be compiled into a program, so this reader stands in for it in proofs. It shares nothing with what
writes the file.

Suffixes: T time, B batch, N width.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimrnn._texts import shown
from slimrnn.errors import ExportError
from slimrnn.exporting.exporter import Run

Array = NDArray[np.float64]
Ran = tuple[Array, list[Array]]  # outputs (T, B, N), and the last states of a recurrent layer


def runtime() -> str:
    return f"numpy {np.__version__}, a reading of RTNeural's format"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Run]:
    """Runs a file on sequences; ExportError for a file that is none."""
    try:
        content = json.loads(path.read_bytes())
        form = content.get("slimrnn", {})
        layers = [_layer(layer) for layer in content["layers"]]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        reason = shown(str(error), 300)
        raise ExportError(f"expected RTNeural's JSON in {path}, got another file or a damaged one: {reason}") from None

    def run(leaves: Sequence[Tensor]) -> list[Tensor]:
        (given,) = leaves
        x = given.detach().numpy().astype(np.float64)
        batched, first = x.ndim == 3, form.get("batch_first", False)
        x_TBN = x[:, None] if not batched else x.swapaxes(0, 1) if first else x
        states: list[list[Array]] = []
        for layer in layers:
            x_TBN, last = layer(x_TBN)
            states += [last] if last else []
        y = x_TBN[:, 0] if not batched else x_TBN.swapaxes(0, 1) if first else x_TBN
        lasts = [np.stack(parts) for parts in zip(*states, strict=False)] if form.get("states") else []
        return [torch.from_numpy(a.copy()) for a in (y, *(last if batched else last[:, 0] for last in lasts))]

    yield run


def _layer(described: dict[str, Any]) -> Callable[[Array], Ran]:
    kind, size = described["type"], described["shape"][-1]
    after = _activation(described.get("activation", "")) if kind in ("dense", "activation") else _same
    weights = [np.array(weight, dtype=np.float64) for weight in described["weights"]]
    if kind == "activation":
        return lambda x: (after(x), [])
    if kind == "dense":
        kernel, bias = _shaped(weights, (None, size), (size,))
        return lambda x: (after(x @ kernel + bias), [])
    if kind == "prelu":
        (alpha,) = _shaped([weights[0][0]], (size,))
        return lambda x: (np.where(x > 0, x, alpha * x), [])
    if kind == "gru":
        return _gru(size, *_shaped(weights, (None, 3 * size), (size, 3 * size), (2, 3 * size)))
    if kind == "lstm":
        return _lstm(size, *_shaped(weights, (None, 4 * size), (size, 4 * size), (4 * size,)))
    raise ValueError(f"unknown layer {kind!r}")


def _shaped(weights: list[Array], *shapes: tuple[int | None, ...]) -> list[Array]:
    for weight, shape in zip(weights, shapes, strict=True):
        fits = len(shape) == weight.ndim and all(want in (None, have) for want, have in zip(shape, weight.shape))  # noqa: B905
        if not fits:
            raise ValueError(f"expected weights of shape {shape}, got {weight.shape}")
    return weights


def _gru(n: int, kernel: Array, recurrent: Array, bias: Array) -> Callable[[Array], Ran]:
    """z, r and c in this order; b[0] is added to what comes from the input, b[1] to what comes from h."""

    def run(x_TBN: Array) -> Ran:
        h, outputs = np.zeros((x_TBN.shape[1], n)), []
        for x in x_TBN:
            a, u = x @ kernel, h @ recurrent
            z = _sigmoid(a[:, :n] + u[:, :n] + bias[0, :n] + bias[1, :n])
            r = _sigmoid(a[:, n : 2 * n] + u[:, n : 2 * n] + bias[0, n : 2 * n] + bias[1, n : 2 * n])
            c = np.tanh(a[:, 2 * n :] + r * (u[:, 2 * n :] + bias[1, 2 * n :]) + bias[0, 2 * n :])
            h = (1 - z) * c + z * h
            outputs.append(h)
        return np.stack(outputs), [h]

    return run


def _lstm(n: int, kernel: Array, recurrent: Array, bias: Array) -> Callable[[Array], Ran]:
    """i, f, c and o in this order."""

    def run(x_TBN: Array) -> Ran:
        h, cell, outputs = np.zeros((x_TBN.shape[1], n)), np.zeros((x_TBN.shape[1], n)), []
        for x in x_TBN:
            i, f, c, o = np.split(x @ kernel + h @ recurrent + bias, 4, axis=1)
            cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(c)
            h = _sigmoid(o) * np.tanh(cell)
            outputs.append(h)
        return np.stack(outputs), [h, cell]

    return run


def _activation(name: str) -> Callable[[Array], Array]:
    found: dict[str, Any] = {
        "": _same,
        "tanh": np.tanh,
        "relu": _relu,
        "sigmoid": _sigmoid,
        "softmax": _softmax,
        "elu": _elu,
    }
    chosen: Callable[[Array], Array] = found[name]
    return chosen


def _same(x: Array) -> Array:
    return x


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _sigmoid(x: Array) -> Array:
    result: Array = 0.5 * (1 + np.tanh(0.5 * x))
    return result


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    result: Array = e / e.sum(-1, keepdims=True)
    return result


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
