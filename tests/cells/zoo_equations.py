"""The equations of the zoo, from the papers, in numpy: one step of one sequence each.

A function gets the recurrent matrices w (G, n, n), the input matrices u (G, n, m), the cell's own parameters and
constants as the paper names them, the input x and the states before; it returns the states after, the output first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
States = tuple[Array, ...]


def sigma(z: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-z)))


def norm(v: Array) -> Array:
    return np.asarray((v - v.mean()) / np.sqrt(v.var() + 1e-5))


def mgu(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    f = sigma(u[0] @ x + w[0] @ h + p.bias[0])
    candidate = np.tanh(u[1] @ x + w[1] @ (f * h) + p.bias[1])
    return ((1 - f) * h + f * candidate,)


def lem(w: Array, u: Array, p: Any, x: Array, y: Array, z: Array) -> States:
    step_z = p.dt * (0.5 * (1 + np.tanh((w[0] @ y + u[0] @ x + p.bias[0]) / 2)))
    step_y = p.dt * (0.5 * (1 + np.tanh((w[1] @ y + u[1] @ x + p.bias[1]) / 2)))
    z = (1 - step_z) * z + step_z * np.tanh(w[2] @ y + u[2] @ x + p.bias[2])
    return (1 - step_y) * y + step_y * np.tanh(w[3] @ z + u[3] @ x + p.bias[3]), z


def cornn(w: Array, u: Array, p: Any, x: Array, y: Array, z: Array) -> States:
    acceleration = np.tanh(w[0] @ y + w[1] @ z + u[0] @ x + p.bias[0]) - p.gamma * y - p.epsilon * z
    z = z + p.dt * acceleration
    return y + p.dt * z, z


def unicornn(w: Array, u: Array, p: Any, x: Array, y: Array, z: Array) -> States:
    time = p.dt * sigma(p.c)
    z = z - time * (np.tanh(w[0] @ y + u[0] @ x + p.bias[0]) + p.alpha * y)
    return y + time * z, z


def deep_transition(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    first = np.tanh(u[0] @ x + w[0] @ h + p.bias[0])
    second = np.tanh(w[1] @ first + p.deeper_bias[0])
    return (np.tanh(w[2] @ second + w[3] @ h + p.deeper_bias[1]),)


def fastgrnn(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    z = sigma(u[0] @ x + w[0] @ h + p.gate_bias)
    candidate = np.tanh(u[0] @ x + w[0] @ h + p.candidate_bias)
    zeta, nu = float(sigma(p.zeta)[0]), float(sigma(p.nu)[0])
    return ((zeta * (1 - z) + nu) * candidate + z * h,)


def slstm(w: Array, u: Array, p: Any, x: Array, h: Array, c: Array, n: Array, m: Array) -> States:
    """Without the stabiliser, which changes neither h nor c / n: c and n are as they are before it divides them."""
    c, n = np.exp(m) * c, np.exp(m) * n
    i, f, g, o = (u[k] @ x + w[k] @ h + p.bias[k] for k in range(4))
    forget = np.exp(f) if p.forget == "exp" else sigma(f)
    c_new, n_new = forget * c + np.exp(i) * np.tanh(g), forget * n + np.exp(i)
    m_new = i if not n.any() else np.maximum(np.log(forget) + m, i)
    return sigma(o) * c_new / n_new, c_new / np.exp(m_new), n_new / np.exp(m_new), m_new


def mingru(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    assert len(w) == 0
    z = sigma(u[0] @ x + p.bias[0])
    return ((1 - z) * h + z * (u[1] @ x + p.bias[1]),)


def minlstm(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    assert len(w) == 0
    f, i = (sigma(u[k] @ x + p.bias[k]) for k in range(2))
    return (f / (f + i) * h + i / (f + i) * (u[2] @ x + p.bias[2]),)


def layer_norm_lstm(w: Array, u: Array, p: Any, x: Array, h: Array, c: Array) -> States:
    i, f, g, o = (p.input_gain[k] * norm(u[k] @ x) + p.recurrent_gain[k] * norm(w[k] @ h) + p.bias[k] for k in range(4))
    c = sigma(f) * c + sigma(i) * np.tanh(g)
    return sigma(o) * np.tanh(p.state_gain * norm(c) + p.state_bias), c


def layer_norm_gru(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    inner = [p.input_gain[k] * norm(u[k] @ x) + p.bias[k] for k in range(3)]
    back = [p.recurrent_gain[k] * norm(w[k] @ h) for k in range(3)]
    reset, update = sigma(inner[0] + back[0]), sigma(inner[1] + back[1])
    candidate = np.tanh(inner[2] + reset * (back[2] + p.recurrent_bias))
    return ((1 - update) * candidate + update * h,)


def antisymmetric(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    return (h + p.epsilon * np.tanh((w[0] - p.gamma * np.eye(len(h))) @ h + u[0] @ x + p.bias[0]),)


def lipschitz(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    a, inner = (w[k] - p.gamma * np.eye(len(h)) for k in range(2))
    return (h + p.epsilon * (a @ h) + p.epsilon * np.tanh(inner @ h + u[0] @ x + p.bias[0]),)


def indrnn(w: Array, u: Array, p: Any, x: Array, h: Array) -> States:
    return (np.maximum(u[0] @ x + w[0] @ h + p.bias[0], 0),)


EQUATIONS: dict[str, Callable[..., States]] = {
    "mgu": mgu,
    "lem": lem,
    "cornn": cornn,
    "unicornn": unicornn,
    "fastgrnn": fastgrnn,
    "slstm": slstm,
    "slstm-exp": slstm,
    "mingru": mingru,
    "minlstm": minlstm,
    "layer-norm-lstm": layer_norm_lstm,
    "layer-norm-gru": layer_norm_gru,
    "antisymmetric": antisymmetric,
    "lipschitz": lipschitz,
    "indrnn": indrnn,
    "deep-transition": deep_transition,
}
