"""The functions of an int8 layer's step, each a fixed order of IEEE float32 operations.

+, −, ·, /, square roots, comparisons and rounding to integers give the same bits wherever they run, if no product is
contracted with a sum (FMA) and nothing is reordered. So torch here, the native core (csrc/simd.h, compiled with
-ffp-contract=off) and generated C agree bit for bit. Where a constant stands, it is this float32 number; `hexadecimal`
writes it as C does. Accuracy: a few units in the last place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import torch
from torch import Tensor


def single(value: float) -> float:
    """The nearest float32 number."""
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def hexadecimal(value: float) -> str:
    """A float32 number as a literal of C99, exactly."""
    return f"{single(value).hex()}f"


LOG2_E = single(1.44269504088896341)
MAGIC = 12582912.0  # 1.5 · 2²³: the integer nearest to a small number stands in the low bits of their sum
LN2_HIGH, LN2_LOW = 0.693145751953125, single(1.428606765330187e-6)  # k · LN2_HIGH is exact
EXP_4, EXP_3, EXP_2 = single(1.394136437e-3), single(8.367197464e-3), single(4.166635351e-2)
EXP_1, EXP_0 = single(1.666653853e-1), single(5.000000045e-1)  # (eʳ − 1 − r) / r² = EXP_0 + EXP_1 r + EXP_2 r² + ...
SIGMOID_LOW, SIGMOID_HIGH = single(-88.8), 87.0
TANH_LOW, TANH_HIGH = -20.0, 20.0
EXP_TOP, EXP_BOTTOM = 89.0, -104.0
LEAST_NORMAL, FAR, FAR_DIGITS = single(1.17549435e-38), 8388608.0, 23.0
LOG_3, LOG_2, LOG_1, LOG_0 = (single(v) for v in (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693))
LOG_LN2_HIGH, LOG_LN2_LOW = single(6.9313812256e-01), single(9.0580006145e-06)
ROOT_HALF_BITS, ONE_BITS = 0x3F3504F3, 0x3F800000


def within(low: float, x: Tensor, high: float) -> Tensor:
    """x between two limits; NaN stays."""
    x = torch.where(x > high, high, x)
    return torch.where(x < low, low, x)


def _power_of_two(shifted: Tensor) -> Tensor:
    """2^k of k + MAGIC, by its bits; infinity for k = 128."""
    bits = shifted.view(torch.int32).to(torch.int64)
    bits = ((bits << 23) + ONE_BITS) & 0xFFFFFFFF
    return torch.where(bits >= 1 << 31, bits - (1 << 32), bits).to(torch.int32).view(torch.float32)


def _split_exp(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """e^x = 2^k (1 + p): 2^k, p, k. NaN passes through p."""
    t = x * LOG2_E + MAGIC
    k = t - MAGIC
    r = x - k * LN2_HIGH - k * LN2_LOW
    r2 = r * r
    q = r2 * EXP_4 + (r * EXP_3 + EXP_2)
    q = r2 * q + (r * EXP_1 + EXP_0)
    return _power_of_two(t), r + r2 * q, k


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e^−x)"""
    scale, p, _ = _split_exp(-within(SIGMOID_LOW, x, SIGMOID_HIGH))
    return torch.reciprocal((p + 1.0) * scale + 1.0)


def tanh(x: Tensor) -> Tensor:
    """m / (m + 2) with m = e^2x − 1; never beyond −1 and 1."""
    scale, p, _ = _split_exp(2.0 * within(TANH_LOW, x, TANH_HIGH))
    m = scale * p + (scale - 1.0)
    return m / (m + 2.0)


def exp(x: Tensor) -> Tensor:
    """e^x, from 0 to infinity; 2^k comes in two halves, since alone it may be too large or too small to write."""
    _, p, k = _split_exp(within(EXP_BOTTOM, x, EXP_TOP))
    half = k * 0.5 + MAGIC
    return (p + 1.0) * _power_of_two(half) * _power_of_two(k - (half - MAGIC) + MAGIC)


def _split_log(x: Tensor) -> tuple[Tensor, Tensor]:
    """x = 2^k (1 + f) with 1 + f between √½ and √2, for positive normal x: k, f."""
    bits = x.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    k = ((bits + (ONE_BITS - ROOT_HALF_BITS)) & 0xFFFFFFFF) >> 23
    rest = (bits - ((k - 127) << 23)) & 0xFFFFFFFF
    signed = torch.where(rest >= 1 << 31, rest - (1 << 32), rest).to(torch.int32)
    return k.to(torch.float32) - 127.0, signed.view(torch.float32) - 1.0


def _join_log(k: Tensor, f: Tensor, more: Tensor) -> Tensor:
    """k ln 2 + log(1 + f) + more, as in fdlibm: f − f²/2 + s (f²/2 + R) with s = f / (2 + f)."""
    s = f / (f + 2.0)
    z, half = s * s, 0.5 * f * f
    q = z * LOG_3 + LOG_2
    q = q * z + LOG_1
    q = q * z + LOG_0
    low = s * (half + q * z) + (k * LOG_LN2_LOW + more)
    return k * LOG_LN2_HIGH - ((half - low) - f)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    is_small = x < LEAST_NORMAL
    k, f = _split_log(torch.where(is_small, x * FAR, x))
    k = k - torch.where(is_small, FAR_DIGITS, 0.0)
    y = _join_log(k, f, torch.zeros_like(x))
    y = torch.where(x == 0, -torch.inf, torch.where(x < 0, torch.nan, y))
    return torch.where(x < torch.inf, y, x)


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x); what 1 + e^−|x| rounds away is given back."""
    most = torch.where(x < 0, 0.0, x)
    small = exp(-torch.abs(x))
    u = small + 1.0
    lost = small - (u - 1.0)
    return most + _join_log(*_split_log(u), lost / u)


def _maximum(a: Tensor, b: Tensor) -> Tensor:
    return torch.where((a > b) | (a != a), a, b)


def _minimum(a: Tensor, b: Tensor) -> Tensor:
    return torch.where((a < b) | (a != a), a, b)


def _sqrt(x: Tensor) -> Tensor:
    """The nearest float32, as IEEE 754 asks; torch.sqrt of float32 is not on every machine."""
    return torch.sqrt(x.double()).float()


def _sign(x: Tensor) -> Tensor:
    return torch.where(x < 0, -1.0, torch.where(x > 0, 1.0, 0.0))


OPERATIONS: dict[str, Callable[..., Tensor]] = {  # of a traced step (tracing/operations.py) that have exact bits
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "neg": torch.neg,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "exp": exp,
    "log": log,
    "softplus": softplus,
    "sqrt": _sqrt,
    "abs": torch.abs,
    "sign": _sign,
    "relu": lambda x: torch.where(x < 0, 0.0, x),
    "maximum": _maximum,
    "minimum": _minimum,
    "where": torch.where,
    "gt": torch.gt,
    "lt": torch.lt,
    "ge": torch.ge,
    "le": torch.le,
    "eq": torch.eq,
}
