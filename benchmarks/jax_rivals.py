"""The same cells in JAX: jax.jit of lax.scan and its gradient by the parameters; used where jax is installed.

Input products for all steps are one product before the scan, as in ours.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy
from cases import GRU_SLIM, KRU, LSTM_BLOCKS, Shape
from timing import Pass

Parameters = dict[str, Any]


def installed() -> bool:
    return importlib.util.find_spec("jax") is not None


def cores() -> int:
    """Threads that XLA uses: all cores of this process, whatever torch was told."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def training_pass(name: str, shape: Shape) -> Pass:
    """As timing.training_pass, of the layer that LAYERS calls `name`."""
    jax: Any = importlib.import_module("jax")
    jnp = jax.numpy
    gates, sizes, step = CELLS[name]
    states, field = (2 if gates == 4 else 1), (numpy.complex64 if name == KRU else numpy.float32)
    random = numpy.random.default_rng(0)
    parts = {"u": (gates * shape.n, shape.m), "b": (gates * shape.n,), **sizes(shape.n)}
    p = {key: jnp.asarray(random.normal(0, size[-1] ** -0.5, size).astype(field)) for key, size in parts.items()}
    x = jnp.asarray(random.normal(size=(shape.T, shape.B, shape.m)).astype(numpy.float32))
    start = tuple(jnp.zeros((shape.B, shape.n), field) for _ in range(states))

    def forward(p: Parameters) -> Any:
        def body(state: Any, wx: Any) -> tuple[Any, Any]:
            state = step(jax, p, wx, state)
            return state, state[0]

        bias = 0 if name == KRU else p["b"]  # modReLU's bias acts within the step
        return jax.lax.scan(body, start, x @ p["u"].T + bias)[1]

    run = jax.jit(lambda p, gradient: jax.vjp(forward, p)[1](gradient))
    gradient = jnp.asarray(random.normal(size=(shape.T, shape.B, shape.n)).astype(field))
    return lambda: jax.block_until_ready(run(p, gradient))


def _gru_after(jax: Any, p: Parameters, wx: Any, state: Any) -> Any:
    (h,) = state
    x_r, x_u, x_n = jax.numpy.split(wx, 3, -1)
    w_r, w_u, w_n = jax.numpy.split(h @ p["w"].T, 3, -1)
    r, u = jax.nn.sigmoid(x_r + w_r), jax.nn.sigmoid(x_u + w_u)
    n = jax.numpy.tanh(x_n + r * (w_n + p["inner"]))
    return (n + u * (h - n),)


def _gru_slim(jax: Any, p: Parameters, wx: Any, state: Any) -> Any:
    (h,) = state
    x_r, x_u, x_n = jax.numpy.split(wx, 3, -1)

    def product(v: Any, g: int) -> Any:
        return (v @ p["right"][g].T) @ p["left"][g].T + v * p["diagonal"][g]

    r, u = jax.nn.sigmoid(x_r + product(h, 0)), jax.nn.sigmoid(x_u + product(h, 1))
    n = jax.numpy.tanh(x_n + product(r * h, 2))
    return (n + u * (h - n),)


def _lstm(jax: Any, z: Any, c: Any) -> Any:
    i, f, g, o = jax.numpy.split(z, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
    return jax.nn.sigmoid(o) * jax.numpy.tanh(c), c


def _lstm_dense(jax: Any, p: Parameters, wx: Any, state: Any) -> Any:
    return _lstm(jax, wx + state[0] @ p["w"].T, state[1])


def _lstm_blocks(jax: Any, p: Parameters, wx: Any, state: Any) -> Any:
    h, c = state
    blocks = h.reshape(len(h), 8, -1)
    product = jax.numpy.einsum("bki,gkoi->bgko", blocks, p["w"])
    return _lstm(jax, wx + product.reshape(len(h), -1), c)


def _kronecker(jax: Any, p: Parameters, wx: Any, state: Any) -> Any:
    (y,) = state
    rows, width = y.shape
    for factor in p["factors"]:
        y = y.reshape(rows * width // 2, 2) @ factor.T
        y = y.reshape(rows, width // 2, 2).swapaxes(1, 2).reshape(rows, width)
    z = wx + y
    modulus = jax.numpy.abs(z) + 1e-8
    return (z / modulus * jax.nn.relu(modulus + p["b"].real),)


Sizes = Callable[[int], dict[str, tuple[int, ...]]]
CELLS: dict[str, tuple[int, Sizes, Callable[..., Any]]] = {  # gates, parameters by state width, step
    "GRU dense": (3, lambda n: {"w": (3 * n, n), "inner": (n,)}, _gru_after),
    GRU_SLIM: (3, lambda n: {"left": (3, n, 24), "right": (3, 24, n), "diagonal": (3, n)}, _gru_slim),
    "LSTM dense": (4, lambda n: {"w": (4 * n, n)}, _lstm_dense),
    LSTM_BLOCKS: (4, lambda n: {"w": (4, 8, n // 8, n // 8)}, _lstm_blocks),
    KRU: (1, lambda n: {"factors": (n.bit_length() - 1, 2, 2)}, _kronecker),
}
