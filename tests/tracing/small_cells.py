"""Small cells, one for each thing that a step may be made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from both_backends import Step
from torch import nn
from torch.nn import functional as F


def total(wx: Any, matvec: Any, state: Any) -> Any:
    return (wx + matvec(state[0])).squeeze(-2)


def tanh(wx: Any, matvec: Any, state: Any) -> Any:
    return torch.tanh(total(wx, matvec, state))


def own(*shapes: tuple[int, ...]) -> Callable[[Any, int], None]:
    """Parameters a, b, c of these shapes, where 0 stands for the number of units; the last is also a buffer, z."""

    def build(cell: Any, hidden: int) -> None:
        for name, shape in zip("abc", shapes, strict=False):
            sizes = [size or hidden for size in shape]
            setattr(cell, name, nn.Parameter(0.5 + 0.3 * torch.rand(sizes, dtype=torch.float64)))
        cell.register_buffer("z", torch.rand([size or hidden for size in shapes[-1]], dtype=torch.float64))

    return build


def norms(cell: Any, hidden: int) -> None:
    cell.norm, cell.plain = nn.LayerNorm(hidden), nn.LayerNorm(hidden, elementwise_affine=False)
    cell.rms = nn.RMSNorm(hidden, eps=1e-3)


def product(matvec: Any, v: Any, k: int = 0) -> Any:
    return matvec(v, slice(k, k + 1)).squeeze(-2)


def several(cell: Any, wx: Any, matvec: Any, state: Any) -> Any:
    """As many states as there are, each fed by the next."""
    z = torch.tanh((wx + matvec(state[0])).squeeze(-2))
    return tuple(torch.tanh(0.7 * s + 0.2 * z * state[k - 1]) for k, s in enumerate(state))


def after_the_step(cell: Any, wx: Any, matvec: Any, state: Any) -> Any:
    y, z = state
    z = torch.tanh(wx[..., 0, :] + product(matvec, y) + 0.5 * z)
    return y + 0.1 * torch.tanh(wx[..., 1, :] + product(matvec, z, 1)), z


def chained(cell: Any, wx: Any, matvec: Any, state: Any) -> Any:
    """The same matrix in a product of a product."""
    first = torch.tanh(wx[..., 0, :] + product(matvec, state[0]))
    return (torch.tanh(product(matvec, first) + product(matvec, state[0] * first) + 0.3 * first),)


CELLS: dict[str, tuple[Step, dict[str, Any]]] = {
    "vector parameter": (
        lambda c, wx, m, s: (torch.tanh((wx + m(s[0]))[..., 0, :] * c.a + c.b * s[0]),),
        {"build": own((0,), (0,))},
    ),
    "numbers as parameters": (
        lambda c, wx, m, s: (torch.tanh(total(wx, m, s) * c.a + c.b * s[0]) * c.z,),
        {"build": own((1,), ())},
    ),
    "buffer": (lambda c, wx, m, s: (torch.tanh(total(wx, m, s) * c.z),), {"build": own((0,))}),
    "rows of parameters": (
        lambda c, wx, m, s: (torch.tanh((wx + c.a * m(s[0])).select(-2, 1) + c.a[0] * s[0] + c.z[1]),),
        {"gates": 2, "build": own((2, 0))},
    ),
    "parameters alone": (
        lambda c, wx, m, s: (torch.sigmoid(c.a).exp() * tanh(wx, m, s) + F.softplus(c.b) * s[0],),
        {"build": own((0,), (1,))},
    ),
    "chosen by parameters": (
        lambda c, wx, m, s: (torch.where(c.a > 0.65, s[0], tanh(wx, m, s)),),
        {"build": own((0,))},
    ),
    "numbers chosen by parameters": (
        lambda c, wx, m, s: (torch.where(c.a > 0.65, 1.0, 0.5) * tanh(wx, m, s) + (c.a > 0.7) * s[0],),
        {"build": own((0,))},
    ),
    "clamped by parameters": (
        lambda c, wx, m, s: (torch.clamp(total(wx, m, s), -c.a, c.b),),
        {"build": own((0,), (0,))},
    ),
    "maximum of parameters": (
        lambda c, wx, m, s: (torch.maximum(c.a, c.b) * tanh(wx, m, s),),
        {"build": own((0,), (0,))},
    ),
    "bias in the step": (lambda c, wx, m, s: (tanh(wx, m, s) * c.bias[0],), {}),
    "mean": (lambda c, wx, m, s: (torch.tanh(total(wx, m, s) - s[0].mean(-1, keepdim=True)),), {}),
    "sum": (lambda c, wx, m, s: (tanh(wx, m, s) / (1 + torch.sum(s[0] * s[0], dim=-1, keepdim=True)),), {}),
    "means of gates": (
        lambda c, wx, m, s: (torch.tanh((wx - wx.mean(-1, keepdim=True) + m(s[0])).unbind(-2)[0]) * wx[..., 1, :],),
        {"gates": 2},
    ),
    "mean of a mean": (
        lambda c, wx, m, s: (torch.tanh((wx + m(s[0] - (s[0] * s[0].mean(-1, True)).mean(-1, True))).squeeze(-2)),),
        {},
    ),
    "layer_norm": (lambda c, wx, m, s: (torch.tanh(F.layer_norm(total(wx, m, s), (c.hidden_size,))),), {}),
    "layer_norm of gates": (
        lambda c, wx, m, s: (torch.tanh(c.norm(wx + m(s[0])).select(-2, 1)) * c.plain(wx).select(-2, 0),),
        {"gates": 2, "build": norms},
    ),
    "LayerNorm and RMSNorm": (
        lambda c, wx, m, s: (torch.tanh(c.norm(total(wx, m, s)) + c.rms(s[0])),),
        {"build": norms},
    ),
    "product of the state": (lambda c, wx, m, s: (torch.tanh(wx + m(s[0]))[..., 0, :],), {}),
    "product of nothing else": (lambda c, wx, m, s: (torch.tanh(m(s[0]))[..., 0, :] + wx[..., 0, :],), {}),
    "product of an input": (lambda c, wx, m, s: (torch.tanh(product(m, wx[..., 0, :]) + s[0] * 0.5),), {}),
    "product of a parameter": (
        lambda c, wx, m, s: (torch.tanh(wx[..., 0, :] + 0.5 * s[0] + product(m, c.a * s[0] + c.a)),),
        {"build": own((0,))},
    ),
    "product from a parameter": (
        lambda c, wx, m, s: (torch.tanh(c.a + product(m, s[0])) + wx.squeeze(-2),),
        {"build": own((0,))},
    ),
    "ranges": (
        lambda c, wx, m, s: (
            torch.tanh(
                (wx[..., 1:, :] + m(s[0], slice(1, 3))).unbind(-2)[0]
                + product(m, s[0], 0) * product(m, torch.sigmoid(s[0]), 2)
                + wx[..., 0, :]
            ),
        ),
        {"gates": 3},
    ),
    "overlapping ranges": (
        lambda c, wx, m, s: (
            torch.tanh(
                m(s[0], slice(0, 2)).unbind(-2)[1]
                + m(torch.tanh(s[0]), slice(1, 3)).unbind(-2)[0]
                + (wx + m(s[0]))[..., 2, :]
            ),
        ),
        {"gates": 3},
    ),
    "the same matrix twice": (
        lambda c, wx, m, s: (torch.tanh(wx[..., 0, :] + product(m, s[0]) + product(m, torch.tanh(s[0]))),),
        {},
    ),
    "the same product twice": (
        lambda c, wx, m, s: (
            torch.tanh(wx[..., 0, :] + product(m, s[0])) * torch.sigmoid(wx[..., 1, :] + product(m, s[0])),
        ),
        {"gates": 2},
    ),
    "a product of products": (chained, {}),
    "a state after the step": (after_the_step, {"gates": 2, "states": 2}),
    "swapped states": (lambda c, wx, m, s: (s[1], tanh(wx, m, s) + 0.5 * s[0]), {"states": 2}),
    "one state twice": (lambda c, wx, m, s: (torch.tanh((wx + m(s[0] + s[1])).squeeze(-2)),) * 2, {"states": 2}),
    "a state that stays": (lambda c, wx, m, s: (torch.tanh(total(wx, m, s) + s[1]), s[1]), {"states": 2}),
    "an input as a state": (lambda c, wx, m, s: (torch.tanh(total(wx, m, s) + s[1]), wx[..., 0, :]), {"states": 2}),
    "a product as a state": (lambda c, wx, m, s: (torch.tanh(wx[..., 0, :] + s[1]), product(m, s[0])), {"states": 2}),
    "more matrices than gates": (
        lambda c, wx, m, s: (
            torch.tanh(wx[..., 0, :] + product(m, s[0], 2)) * torch.sigmoid(m(s[0], slice(0, 2)).select(-2, 1)),
        ),
        {"matrices": 3},
    ),
    "fewer matrices than gates": (
        lambda c, wx, m, s: (
            torch.tanh(wx[..., 2, :] + product(m, s[0])) * torch.sigmoid(wx[..., 1, :] + product(m, s[0]))
            + wx[..., 0, :],
        ),
        {"gates": 3, "matrices": 1},
    ),
    "no matrices": (
        lambda c, wx, m, s: (s[0] + torch.sigmoid(wx[..., 0, :]) * (wx[..., 1, :] - s[0]),),
        {"gates": 2, "matrices": 0},
    ),
    "unused gates": (lambda c, wx, m, s: (torch.tanh(wx[..., 1, :] + m(s[0]).unbind(-2)[1]),), {"gates": 3}),
    "split and chunk": (
        lambda c, wx, m, s: (
            torch.tanh(
                wx.split(2, -2)[0].chunk(2, dim=-2)[1].squeeze(-2) + m(s[0]).split([1, 2], dim=-2)[1].select(-2, 0)
            ),
        ),
        {"gates": 3},
    ),
}
CELLS |= {f"{count} states": (several, {"states": count}) for count in range(1, 9)}
