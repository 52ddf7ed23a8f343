"""Back-propagation through time of an Elman net, equation by equation as in the lecture ("Computing Gradient in RNNs").

    a_t = b + W h_{t−1} + U x_t,   h_t = tanh(a_t),   o_t = c + V h_t,   ŷ_t = softmax(o_t),   L = −Σ_t log ŷ_t[y_t]

Shape suffixes: T time, B batch, I input width, H hidden units, O classes. Vectors lie in rows, so the lecture's Vᵀg is
written g @ V.

In the text of the lecture that we have, ∇_h carries diag(1 − h²) to the right of the vector, where no product is
defined: it belongs between Wᵀ and the vector. ∇_b differentiates by "b^(t)", the copy of b used at step t, and "∇_v" is
∇_V. The standard forms stand here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from slimrnn.cells import ElmanCell
from slimrnn.layers import RNN

IGNORED = -100  # the target of a step that has no loss, as in torch's cross_entropy

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BPTT:
    """Everything that a forward and a backward pass compute, in float64; without a batch, the axis B is missing.

    The loss is the sum over steps and sequences, so the gradients of the parameters are sums too."""

    loss: float
    losses: Array  #: L_t (T, B), 0 where the target is ignored
    h0: Array  #: (B, H)
    h: Array  #: (T, B, H): h[t] follows x[t]
    o: Array  #: (T, B, O)
    y: Array  #: ŷ (T, B, O)
    grad_o: Array  #: (T, B, O)
    grad_h: Array  #: (T, B, H)
    grad_a: Array  #: diag(1 − h_t²) ∇_{h_t} L (T, B, H), of which ∇_b, ∇_W and ∇_U are made
    grad_h0: Array  #: (B, H)
    grad_c: Array  #: (O)
    grad_b: Array  #: (H)
    grad_V: Array  #: (O, H)
    grad_W: Array  #: (H, H)
    grad_U: Array  #: (H, I)
    grad_W_at: Array  #: (T, H, H): the part of ∇_W that is due to the use of W at step t; their sum is ∇_W


def elman_bptt(
    U: ArrayLike | Tensor,
    W: ArrayLike | Tensor,
    V: ArrayLike | Tensor,
    b: ArrayLike | Tensor,
    c: ArrayLike | Tensor,
    x: ArrayLike | Tensor,
    targets: ArrayLike | Tensor,
    h0: ArrayLike | Tensor | None = None,
) -> BPTT:
    """Both passes for a sequence x (T, I) with targets (T), or a batch x (T, B, I) with targets (T, B).

    U is (H, I), W (H, H), V (O, H), b (H), c (O), h0 (H) or (B, H), by default 0. A target is the number of a class, or
    −100 at a step without a loss: a net with a single output at the end, the padding of a short sequence."""
    U, W, V, b, c = _numbers("U", U), _numbers("W", W), _numbers("V", V), _numbers("b", b), _numbers("c", c)
    _check_weights(U, W, V, b, c)
    x = _numbers("x", x)
    if x.ndim not in (2, 3) or x.shape[-1] != U.shape[1] or 0 in x.shape:
        raise ValueError(
            f"expected x of shape (T, {U.shape[1]}) or (T, B, {U.shape[1]}), at least one step, got {x.shape}"
        )
    y = _classes(targets, x.shape[:-1], len(c))
    state = (*x.shape[1:-1], len(W))
    h0 = np.zeros(state) if h0 is None else _numbers("h0", h0)
    _check_shape("h0", h0, state)
    if x.ndim == 3:
        return _both_passes(U, W, V, b, c, x, y, h0)
    return _without_batch(_both_passes(U, W, V, b, c, x[:, None], y[:, None], h0[None]))


def layer_bptt(rnn: RNN, readout: nn.Linear, x: Tensor, targets: Tensor, h0: Tensor | None = None) -> BPTT:
    """The same for a tanh `RNN` of one layer followed by an `nn.Linear`, on x and h0 as the layer takes them.

    With `batch_first`, targets are (B, T), too; the result leads with time in any case. ∇_W and ∇_U are the gradients
    of the matrices written out, whatever structure they have; where a bias is missing, ∇ is that of a bias of 0."""
    _check_layers(rnn, readout)
    layer = rnn.layer(0)
    x, targets = torch.as_tensor(x), torch.as_tensor(targets)
    if x.dim() not in (2, 3) or x.shape[-1] != rnn.input_size or targets.shape != x.shape[:-1]:
        raise ValueError(
            f"expected x of shape (..., {rnn.input_size}) with one or two dimensions before it, and targets of those, "
            f"got {tuple(x.shape)} and {tuple(targets.shape)}"
        )
    if x.dim() == 3 and rnn.batch_first:
        x, targets = x.transpose(0, 1), targets.transpose(0, 1)
    if h0 is None:
        given = rnn.initial_state(x.shape[1] if x.dim() == 3 else None)
        assert isinstance(given, Tensor)  # an Elman net has one state
        h0 = given
    _check_shape("h0", _numbers("h0", h0), (1, *x.shape[1:-1], rnn.hidden_size))
    bias, c = layer.cell.input_bias(), readout.bias
    return elman_bptt(
        layer.input.dense()[0],
        layer.recurrent.dense()[0],
        readout.weight,
        np.zeros(rnn.hidden_size) if bias is None else bias[0],
        np.zeros(readout.out_features) if c is None else c,
        x,
        targets,
        h0[0],
    )


def _both_passes(
    U: Array, W: Array, V: Array, b: Array, c: Array, x_TBI: Array, y_TB: NDArray[np.int64], h0_BH: Array
) -> BPTT:
    h = _states(U, W, b, x_TBI, h0_BH)
    before = np.concatenate([h0_BH[None], h[:-1]])  # h_{t−1}
    o = c + h @ V.T
    log_y = o - o.max(-1, keepdims=True)
    log_y = log_y - np.log(np.exp(log_y).sum(-1, keepdims=True))
    counted = y_TB != IGNORED
    true_class = np.eye(len(c))[np.where(counted, y_TB, 0)]
    losses = np.where(counted, -(log_y * true_class).sum(-1), 0.0)

    grad_o = (np.exp(log_y) - true_class) * counted[..., None]
    grad_h = np.empty_like(h)
    grad_h[-1] = grad_o[-1] @ V  # the last state only has o_τ as a descendant
    for t in reversed(range(len(h) - 1)):
        grad_h[t] = ((1 - h[t + 1] ** 2) * grad_h[t + 1]) @ W + grad_o[t] @ V
    grad_a = (1 - h**2) * grad_h
    grad_W_at = np.einsum("tbi,tbj->tij", grad_a, before)
    return BPTT(
        loss=float(losses.sum()),
        losses=losses,
        h0=h0_BH,
        h=h,
        o=o,
        y=np.exp(log_y),
        grad_o=grad_o,
        grad_h=grad_h,
        grad_a=grad_a,
        grad_h0=grad_a[0] @ W,
        grad_c=grad_o.sum((0, 1)),
        grad_b=grad_a.sum((0, 1)),
        grad_V=np.einsum("tbi,tbj->ij", grad_o, h),
        grad_W=grad_W_at.sum(0),
        grad_U=np.einsum("tbi,tbj->ij", grad_a, x_TBI),
        grad_W_at=grad_W_at,
    )


def _states(U: Array, W: Array, b: Array, x_TBI: Array, h_BH: Array) -> Array:
    states = []
    for x_BI in x_TBI:
        h_BH = np.tanh(b + h_BH @ W.T + x_BI @ U.T)
        states.append(h_BH)
    return np.stack(states)


def _without_batch(result: BPTT) -> BPTT:
    leading, timed = ("h0", "grad_h0"), ("losses", "h", "o", "y", "grad_o", "grad_h", "grad_a")
    fields = dict(vars(result))
    fields.update({name: fields[name][0] for name in leading})
    fields.update({name: fields[name][:, 0] for name in timed})
    return BPTT(**fields)


def _numbers(name: str, given: ArrayLike | Tensor) -> Array:
    array = _array(name, given)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"expected {name} to be an array of real numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers in {name}, got {array[~np.isfinite(array)][0]}")
    return array.astype(np.float64)


def _classes(given: ArrayLike | Tensor, shape: tuple[int, ...], classes: int) -> NDArray[np.int64]:
    array = _array("targets", given)
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected targets to be an array of ints, got {array.dtype}")
    _check_shape("targets", array, shape)
    wrong = array[(array != IGNORED) & ((array < 0) | (array >= classes))]
    if wrong.size:
        raise ValueError(f"expected targets from 0 to {classes - 1}, or {IGNORED} for no loss, got {wrong[0]}")
    return array.astype(np.int64)


def _array(name: str, given: ArrayLike | Tensor) -> NDArray[Any]:
    if isinstance(given, Tensor):
        given = given.detach().cpu()
        return (given.double() if given.is_floating_point() else given.resolve_conj()).numpy()  # numpy has no bfloat16
    try:
        return np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"expected {name} to be an array, got {given!r}") from error


def _check_weights(U: Array, W: Array, V: Array, b: Array, c: Array) -> None:
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not len(W):
        raise ValueError(f"expected W to be a square matrix, got shape {W.shape}")
    for name, matrix in (("U", U), ("V", V)):
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(f"expected {name} to be a matrix, got shape {matrix.shape}")
    _check_shape("U", U, (len(W), U.shape[1]))
    _check_shape("V", V, (len(V), len(W)))
    _check_shape("b", b, (len(W),))
    _check_shape("c", c, (len(V),))


def _check_shape(name: str, array: NDArray[np.generic], shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"expected {name} of shape {shape}, got {array.shape}")


def _check_layers(rnn: RNN, readout: nn.Linear) -> None:
    if not isinstance(rnn, RNN):
        raise TypeError(f"expected a slimrnn.RNN, got {type(rnn).__module__}.{type(rnn).__qualname__}")
    if not isinstance(readout, nn.Linear):
        raise TypeError(f"expected a torch.nn.Linear, got {type(readout).__module__}.{type(readout).__qualname__}")
    cell = rnn.cell
    assert isinstance(cell, ElmanCell)  # what an RNN is made of
    if cell.nonlinearity != "tanh":
        raise ValueError(f"expected nonlinearity='tanh', got {cell.nonlinearity!r}")
    if rnn.num_layers != 1 or rnn.bidirectional:
        directions = "two directions" if rnn.bidirectional else "one direction"
        raise ValueError(f"expected one layer in one direction, got num_layers={rnn.num_layers} in {directions}")
    for name in ("recurrent_dropout", "weight_drop"):
        if rnn.training and getattr(rnn, name):
            raise ValueError(f"expected eval() with {name}, whose mask is drawn anew each time, got training")
    if rnn.zoneout:
        raise ValueError(f"expected an RNN without zoneout, which is not in the lecture's equations, got {rnn.zoneout}")
    further = {"leak": None, "transition_depth": 1, "delays": (1,), "skip": None}
    for name, without in further.items():
        if (given := getattr(rnn, name)) != without:
            raise ValueError(f"expected an RNN without {name}, which is not in the lecture's equations, got {given}")
    if readout.in_features != rnn.hidden_size:
        raise ValueError(f"expected readout.in_features={rnn.hidden_size}, got {readout.in_features}")
