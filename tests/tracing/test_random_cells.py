"""Random small cells out of the vocabulary: native = reference, outputs and all gradients."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from both_backends import LENGTHS, cell_of, check, found, layer_with
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from registry import needs_library
from slimrnn import BlockDiagonal, Dense, Diagonal, Kronecker, LowRank, Permutation, Structure

WIDTH = 6
STRUCTURES: list[Structure] = [
    Dense(),
    Diagonal(),
    LowRank(2) + Diagonal(),
    Kronecker([2, 3]),
    BlockDiagonal(2) @ Permutation(seed=1),
]
# Values stay within a few units, and away from where a derivative jumps but for a set of measure zero.
ONE: list[Callable[[Any], Any]] = [
    torch.tanh,
    torch.sigmoid,
    lambda a: torch.exp(-torch.abs(a)),
    lambda a: torch.log(1.5 + a * a),
    lambda a: torch.sqrt(1.0 + a * a) - 1,
    F.softplus,
    F.relu,
    torch.neg,
    torch.square,
    lambda a: torch.clamp(a, -0.5, 1.5),
    lambda a: a**3 / 3,
    lambda a: 1 / (1 + a.square()),
    lambda a: a - a.mean(-1, keepdim=True),
    lambda a: 0.2 * a.sum(-1, keepdim=True) + a,
    lambda a: F.layer_norm(a, (WIDTH,), eps=0.1),
    lambda a: F.rms_norm(a, (WIDTH,), eps=0.1),
    lambda a: 0.7 * a + 0.1,
]
TWO: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / (1.5 + torch.abs(b)),
    torch.maximum,
    torch.minimum,
    lambda a, b: torch.where(a > b, torch.tanh(a), b),
    lambda a, b: torch.where(a <= 0.3, a * b, 0.25),
    lambda a, b: torch.lerp(a, b, torch.sigmoid(a)),
    lambda a, b: (a > 0.1) * b,
]
FULL_ONLY = range(12, 16)  # functions of numbers that differ from row to row


class Plan:
    """What a random step does, drawn once: the same for stand-ins and for tensors."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.gates, self.states = draw.randint(1, 3), draw.randint(1, 3)
        self.matrices = draw.choice([self.gates, self.gates, draw.randint(1, 3)])
        self.rows = draw.randint(0, 2)
        self.lines: list[tuple[str, int, int, int, int]] = []
        count = self.gates + self.states + self.rows + 1
        products = 0
        for _ in range(draw.randint(3, 10)):
            kind = draw.choice(["one", "two", "two", "product"] if products < 3 else ["one", "two", "two"])
            first = draw.randrange(self.matrices)
            last = draw.randint(first + 1, self.matrices)
            products += kind == "product"
            function = draw.randrange(len(ONE) if kind == "one" else len(TWO))
            self.lines.append((kind, function, draw.randrange(count), draw.randrange(count), first * 8 + last))
            count += last - first if kind == "product" else 1
        self.ends = [draw.randrange(count) for _ in range(self.states)]
        self.plain = [draw.random() < 0.4 for _ in range(self.states)]
        self.into = [draw.randrange(self.gates) for _ in range(self.states)]

    def build(self, cell: Any, hidden: int) -> None:
        if self.rows:
            cell.rows = nn.Parameter(torch.rand(self.rows, hidden, dtype=torch.float64))
        cell.number = nn.Parameter(torch.rand((), dtype=torch.float64))

    def step(self, cell: Any, wx: Any, matvec: Any, state: Any) -> Any:
        values = [*wx.unbind(-2), *state]
        own = [*(cell.rows[k] for k in range(self.rows)), cell.number]
        of_own = set(range(len(values), len(values) + len(own)))
        values += own
        for kind, function, a, b, which in self.lines:
            new = len(values)
            if kind == "product":
                x = state[0] * values[a] if a in of_own else values[a]
                first, last = divmod(which, 8)
                values += matvec(x, slice(first, last)).unbind(-2)
                continue
            if kind == "one":
                if a in of_own and function in FULL_ONLY:
                    function = 0
                else:
                    of_own |= {new} if a in of_own else set()
                values.append(ONE[function](values[a]))
            else:
                of_own |= {new} if a in of_own and b in of_own else set()
                values.append(TWO[function](values[a], values[b]))
            if a in of_own and kind == "one" and function == 0:
                of_own.add(new)
        return tuple(self.end(k, values, of_own, wx, state) for k in range(self.states))

    def end(self, k: int, values: list[Any], of_own: set[int], wx: Any, state: Any) -> Any:
        """A state: any value as it is, if it is tame and not of parameters alone, or within bounds."""
        value = values[self.ends[k]]
        if self.plain[k] and self.ends[k] not in of_own:
            return value if self.ends[k] < self.gates + self.states else torch.tanh(value)
        return 0.6 * torch.tanh(0.5 * value + wx.unbind(-2)[self.into[k]]) + 0.3 * state[k]


VARIANTS: list[tuple[dict[str, Any], dict[str, Any]]] = [  # options of the layer, and of the call
    ({}, {}),
    ({}, {"lengths": LENGTHS}),
    ({}, {"lengths": LENGTHS, "reverse": True}),
    ({"recurrent_dropout": 0.4}, {}),
    ({"recurrent_dropout": 0.4, "mask_per_gate": True}, {"lengths": LENGTHS}),
    ({"leak": 0.3}, {"lengths": LENGTHS}),
    ({"transition_depth": 2}, {}),
    ({"zoneout": 0.3}, {"lengths": LENGTHS}),
]


@needs_library
@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from(STRUCTURES), st.sampled_from(VARIANTS))
def test_random_cells(seed: int, structure: Structure, variant: tuple[dict[str, Any], dict[str, Any]]) -> None:
    options, call = variant
    plan = Plan(seed)
    cell = cell_of(plan.step, plan.gates, plan.states, plan.matrices, plan.build)
    torch.manual_seed(seed)
    layer = layer_with(cell, WIDTH, structure=structure, **options)
    check(layer, None, None, **call)
    assert found(layer.cell).native.code < 0


def test_random_cells_differ() -> None:
    texts = set()
    for seed in range(40):
        plan = Plan(seed)
        cell = cell_of(plan.step, plan.gates, plan.states, plan.matrices, plan.build)(WIDTH)
        texts.add(found(cell).native.text)
    assert len(texts) >= 35
