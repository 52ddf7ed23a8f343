"""Small changes of the state, carried along a trajectory by the Jacobians of its steps.

Shape suffixes: T time, B batch, H hidden units, N rows (steps of all sequences).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import forward_ad

from slimrnn._fields import pairs_flat
from slimrnn.analysis.model.layers import frozen
from slimrnn.analysis.model.linear_steps import DENSE, Linearizer, can_serve
from slimrnn.analysis.model.trajectory import Trajectory
from slimrnn.cells.base import State
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.structures.base import ALL, Prepared
from slimrnn.structures.dense import dense_product

ROWS = 256  # Jacobians whose norms are taken, at most
STARTS = 4  # other states, for every sequence
PIECE = 2**16  # numbers of the gates of the steps that are made linear at once: larger tensors leave the cache
ROUNDS = 30  # of the power iteration
TINY = 1e-300

Carry = Callable[[State], State]


@torch.no_grad()
def growth(core: RecurrentLayer, trajectory: Trajectory, seed: int) -> NDArray[np.float64]:
    """The logarithm of the growth of a random change in each step (T, B), with `core` in double precision.

    0 for modReLU as long as the state is exactly zero, where it has no derivative."""
    generator = torch.Generator().manual_seed(seed)
    state = tuple(_double(part) for part in trajectory.start)
    change = _unit(tuple(_random(part, generator) for part in state))[0]
    core, x = frozen(core), _double(trajectory.x)
    smooth = getattr(core.cell, "nonlinearity", "") != "modrelu"
    moved = torch.full((x.shape[1],), smooth, device=x.device)
    found = []
    for moving_B, carry in _steps(core, x, state):
        moved = moved | moving_B
        after = carry(change)
        if not smooth:
            after = _where(moved, after, change)
        after, sizes_B = _unit(after)
        found.append(sizes_B.log())
        change = _where(sizes_B != 0, after, change)  # where all is lost, go on with another
    return torch.stack(found).cpu().numpy()


def _steps(core: RecurrentLayer, x_TBI: Tensor, state: State) -> Iterator[tuple[Tensor, Carry]]:
    """For each step whether the state before it is not exactly zero (B), and what carries a change of it on.

    `core` is a frozen copy."""
    if core.line > 1 or not can_serve(core):
        yield from _dual_steps(core, x_TBI, state)
        return
    width = len(core.cell.gates) * core.cell.hidden_size * len(core.transitions)
    linearizer = Linearizer(core)
    for piece in x_TBI.split(max(1, PIECE // (x_TBI.shape[1] * width))):
        linear, states, state = linearizer.along(piece, state)
        for t, moving_B in enumerate(_moving(states).unbind(0)):
            yield moving_B, partial(linear.forth, t)


def _dual_steps(core: RecurrentLayer, x_TBI: Tensor, state: State) -> Iterator[tuple[Tensor, Carry]]:
    """The same by forward-mode derivatives of any step, which take several times as long."""
    products = core.input_product(x_TBI) if core.line == 1 else None
    _write_out(core)
    with forward_ad.dual_level():
        _hold_still(core)
        advance = core.advance()
        for t in range(len(x_TBI)):
            reached: list[State] = []

            def carry(change: State, t: int = t, before: State = state, reached: list[State] = reached) -> State:
                dual = tuple(forward_ad.make_dual(part, move) for part, move in zip(before, change, strict=True))
                given = core.step(_still(x_TBI[t]), dual) if products is None else advance(_still(products[t]), dual)
                unpacked = [forward_ad.unpack_dual(part) for part in given]
                reached.append(tuple(part.primal for part in unpacked))
                return tuple(torch.zeros_like(p.primal) if p.tangent is None else p.tangent for p in unpacked)

            yield _moving(state), carry
            (state,) = reached


def _hold_still(core: RecurrentLayer) -> None:
    """Of a copy: the parameters of its cells become tensors with a tangent of zeros. Without one, torch adds a symbolic
    zero, which goes through Python and takes longer than the step itself."""
    for cell in (transition.cell for transition in core.transitions):
        for name, parameter in list(cell.named_parameters(recurse=False)):
            delattr(cell, name)
            setattr(cell, name, _still(parameter))


def _write_out(core: RecurrentLayer) -> None:
    """Of a copy: its maps multiply by dense matrices, unless these are large. A structured product is many small
    operations, and each of them takes several times as long with a tangent."""
    for inner in core.maps:
        if inner.shape.in_size <= DENSE:
            inner.matvec = partial(_dense_matvec, inner.dense())  # type: ignore[method-assign]


def _dense_matvec(matrices: Tensor, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
    return dense_product(matrices[gates], h)


def _still(constant: Tensor) -> Tensor:
    """A copy, since of a part of a tensor torch gives the whole a tangent."""
    dual: Tensor = forward_ad.make_dual(constant.detach().clone(), torch.zeros_like(constant))
    return dual


@torch.no_grad()
def largest_norm(core: RecurrentLayer, trajectory: Trajectory, seed: int) -> float:
    """The largest ‖∂s_t/∂s_{t−delay}‖₂ of up to 256 steps, by power iteration, with `core` in double precision.

    With a skip, the derivative by the last state alone."""
    generator = torch.Generator().manual_seed(seed)
    wx = trajectory.products()
    before, valid = trajectory.states_before(wx), trajectory.valid
    count = int(valid.sum())
    rows = torch.linspace(0, count - 1, min(count, ROWS)).long().to(valid.device)
    wx_NGH = _double(wx[valid][rows])
    state = tuple(_double(part[valid][rows]) for part in before)
    forth, back = _one_linear_step(core, wx_NGH, state) if can_serve(core) else _one_step(core, wx_NGH, state)
    change = _unit(tuple(_random(part, generator) for part in state))[0]
    sizes_N = torch.zeros(len(rows))
    for _ in range(ROUNDS):
        after = forth(change)
        sizes_N = _unit(after)[1]
        change = _unit(back(after))[0]
    return float(sizes_N.max())


def _one_linear_step(core: RecurrentLayer, wx_NGH: Tensor, state: State) -> tuple[Carry, Carry]:
    """What carries changes forth and gradients back through one step of all rows."""
    steps = Linearizer(frozen(core)).at(wx_NGH.unsqueeze(0), tuple(part.unsqueeze(0) for part in state))
    return partial(steps.forth, 0), partial(steps.back, 0)


def _one_step(core: RecurrentLayer, wx_NGH: Tensor, state: State) -> tuple[Carry, Carry]:
    """The same for any step. A gradient is linear in what it is taken of, and its gradient by that is the way forth."""
    advance = core.advance()
    with torch.enable_grad():
        given = tuple(part.requires_grad_() for part in state)
        reached = advance(wx_NGH, given)
        weights = tuple(torch.zeros_like(part).requires_grad_() for part in reached)
        pulled = torch.autograd.grad(reached, given, weights, create_graph=True, materialize_grads=True)
    linear = [k for k, part in enumerate(pulled) if part.requires_grad]

    def forth(change: State) -> State:
        if not linear:
            return tuple(torch.zeros_like(part) for part in reached)
        along = ([pulled[k] for k in linear], weights, [change[k] for k in linear])
        return torch.autograd.grad(*along, retain_graph=True, materialize_grads=True)

    def back(d_after: State) -> State:
        return torch.autograd.grad(reached, given, d_after, retain_graph=True, materialize_grads=True)

    return forth, back


@torch.no_grad()
def share_apart(core: RecurrentLayer, trajectory: Trajectory, rate: float, seed: int) -> float:
    """The share of other states to start from whose distance to the trajectory stays, although small changes fall at
    this rate; with `core` in double precision. theory.memory_range says what counts."""
    generator = torch.Generator().manual_seed(seed)
    x, lengths = _double(trajectory.x), trajectory.lengths
    start = tuple(_double(part) for part in trajectory.start)
    h = core(x, start, lengths)[0]
    ends_B = trajectory.valid.sum(0)
    middle_B, sequence_B = ends_B // 2, torch.arange(len(ends_B), device=x.device)
    predicted_B = (rate * (ends_B - middle_B)).exp()
    found = []
    for _ in range(STARTS):
        other = core(x, tuple(2 * _random(part, generator) for part in start), lengths)[0]
        distances = torch.linalg.vector_norm(h - other, dim=-1)
        first, middle, last = distances[0], distances[middle_B, sequence_B], distances[ends_B - 1, sequence_B]
        found.append((predicted_B < 0.05) & (last > predicted_B.sqrt() * middle) & (last > 1e-3 * first))
    return float(torch.stack(found).double().mean())


def _double(part: Tensor) -> Tensor:
    return part.to(torch.complex128 if part.is_complex() else torch.float64)


def _random(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, dtype=like.dtype, generator=generator).to(like.device)


def _moving(state: State) -> Tensor:
    return torch.stack([(part != 0).any(-1) for part in state]).any(0)


def _where(chosen_B: Tensor, some: State, others: State) -> State:
    return tuple(torch.where(chosen_B.unsqueeze(-1), one, other) for one, other in zip(some, others, strict=True))


def _unit(change: State) -> tuple[State, Tensor]:
    """Of norm one over all states of a sequence, and the norm it had."""
    sizes = torch.linalg.vector_norm(torch.cat([pairs_flat(part) for part in change], -1), dim=-1)
    return tuple(part / sizes.clamp_min(TINY).unsqueeze(-1) for part in change), sizes
