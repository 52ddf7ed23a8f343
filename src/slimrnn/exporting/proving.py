"""Run an artefact beside the model that it was made from."""

from __future__ import annotations

import copy
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from slimrnn.errors import ExportError
from slimrnn.exporting.examples import FREE, Example, Sizes
from slimrnn.exporting.exporter import Exporter, Run, timed
from slimrnn.exporting.proof import Case, Proof, content_of, sha256_of
from slimrnn.exporting.stages import Unrolled

SEED = 20  # of the random sequences
STEPS = 6
STATES = ("hx", "state")  # what models call the parameter that a state goes in by
OF_DOUBLES = 1e-10
MOST_OF_ROUNDING = 1e-3
UNROLLED = (Sizes(500, 1), Sizes(500, 3), Sizes(1, 1))  # of what runs single steps only


def prove(
    model: nn.Module,
    examples: Sequence[Example],
    to: str,
    exporter: Exporter,
    artefact: Path,
    step: bool,
    tolerance: float | None,
    measured: dict[str, float] | None = None,
) -> Proof:
    """ExportError where the artefact differs by more than the tolerance."""
    with exporter.open(artefact) as run:
        cases = list(_cases(model, examples, run, step))
    allowed = _tolerance(model, examples[0], exporter, cases) if tolerance is None else tolerance
    known = (measured or {}) | exporter.sizes(artefact)
    proof = _proof(cases, to, exporter, artefact, step, allowed, known)
    if not proof.relative <= allowed:  # or no number
        worst = max(cases, key=lambda case: case.relative if case.relative == case.relative else float("inf"))
        raise ExportError(
            f"expected the {to} export to differ by at most {allowed:.0e} of the largest output, got "
            f"{worst.relative:.1e} for {worst.inputs} {worst.way}: nothing was written (tolerance= allows more)"
        )
    return proof


def _proof(
    cases: Sequence[Case],
    to: str,
    exporter: Exporter,
    artefact: Path,
    step: bool,
    tolerance: float,
    measured: dict[str, float],
) -> Proof:
    files = {file.name: content_of(file) for file in exporter.files(artefact)}
    sums = {name: sha256_of(data) for name, data in files.items()}
    return Proof(
        to=to,
        artefact=artefact.name,
        sha256=sums.pop(artefact.name),
        others=sums,
        bytes=sum(map(len, files.values())),
        runtime=exporter.runtime(),
        versions={"python": platform.python_version(), "torch": torch.__version__},
        step=step or exporter.steps_only,
        tolerance=tolerance,
        largest=max(case.largest for case in cases),
        mean=sum(case.mean for case in cases) / len(cases),
        relative=max(case.relative for case in cases),
        cases=tuple(cases),
        measured=measured,
    )


def _tolerance(model: nn.Module, example: Example, exporter: Exporter, cases: Sequence[Case]) -> float:
    """No difference where all bits are defined. Over many steps the rounding of a net that forgets nothing adds up, in
    the model itself as well: where that is why, three times that of the model is allowed."""
    leaves = [t for t in model.parameters() if t.is_floating_point()]
    if not isinstance(model, Unrolled):
        doubles = exporter.tolerance and all(t.dtype == torch.float64 for t in leaves)
        return OF_DOUBLES if doubles else exporter.tolerance
    if model.is_exact:
        return 0.0
    if all(case.relative <= exporter.tolerance for case in cases):
        return exporter.tolerance
    sequences = example.random(UNROLLED[0], torch.Generator().manual_seed(SEED)).values["x"]
    ours = model(sequences)
    exact = copy.deepcopy(model).double()(sequences.double() if sequences.is_floating_point() else sequences)
    rounding = float((ours - exact).abs().max() / exact.abs().max().clamp_min(1e-30))
    return max(exporter.tolerance, min(3 * rounding, MOST_OF_ROUNDING)) if rounding == rounding else exporter.tolerance


def _cases(model: nn.Module, examples: Sequence[Example], run: Run, step: bool) -> Iterator[Case]:
    generator = torch.Generator().manual_seed(SEED)
    first, *given = examples
    yield _compared(model, first, run, True)
    for sizes in UNROLLED if isinstance(model, Unrolled) else _other_sizes(first.sizes):
        yield _compared(model, first.random(sizes, generator), run, False)
    for example in given:
        yield _compared(model, example, run, True)
    if step:
        yield _in_steps(model, [first.random(first.sizes, generator) for _ in range(STEPS)], run)
    elif _carries_state(model, first):
        sizes = first.sizes._replace(length=STEPS)
        yield _in_steps(model, _split(first.random(sizes, generator), first), run, whole=True)


def _other_sizes(sizes: Sizes) -> list[Sizes]:
    """With other numbers, one of everything, a longer sequence, a larger batch."""
    length, batch = sizes
    found = [
        sizes,
        Sizes(length and 1, batch and 1),
        Sizes(length and 2 * length + 1, batch and 1),
        Sizes(length and 3, batch and batch + 3),
    ]
    return list(dict.fromkeys(found))


def _compared(model: nn.Module, example: Example, run: Run, given: bool) -> Case:
    ours, our_seconds = timed(lambda: model(**example.values))
    theirs, seconds = _timed_there(run, example.leaves)
    return _case(_tensors(ours), theirs, _described(example), "whole", given, seconds, our_seconds)


def _in_steps(model: nn.Module, pieces: list[Example], run: Run, whole: bool = False) -> Case:
    """With the state of each step going into the next one, in both."""
    state_name = next(name for name in STATES if name in pieces[0].values)
    ours: list[Tensor] = []
    theirs: list[Tensor] = []
    our_state = pieces[0].values[state_name]
    their_state = pytree.tree_leaves(our_state)
    seconds = our_seconds = 0.0
    for piece in pieces:
        values = {**piece.values, state_name: our_state}
        (output, our_state), took = timed(lambda values=values: model(**values))  # type: ignore[misc]
        our_seconds += took
        leaves = [
            leaf for name, value in piece.values.items() for leaf in _leaves_of(name, value, state_name, their_state)
        ]
        (found, *their_state), took = _timed_there(run, leaves)
        seconds += took
        ours.append(output)
        theirs.append(found)
    axis = 1 if whole and getattr(model, "batch_first", False) and ours[0].dim() == 3 else 0
    joined = [torch.cat(some, axis) if whole else torch.stack(some) for some in (ours, theirs)]
    outputs = [joined[0], *_tensors(our_state)], [joined[1], *their_state]
    text = f"{len(pieces)} x ({_described(pieces[0])})"
    return _case(*outputs, text, "in steps", False, seconds, our_seconds)


def _leaves_of(name: str, value: Any, state_name: str, state: list[Tensor]) -> list[Tensor]:
    return state if name == state_name else _tensors(value)


def _carries_state(model: nn.Module, example: Example) -> bool:
    """Whether it takes a state and gives one like it, so that a sequence can be run in pieces."""
    values = example.values
    name = next((name for name in STATES if name in values), None)
    ragged = any("length" in other and values[other] is not None for other in values)
    if example.sizes.length is None or name is None or ragged:
        return False
    if getattr(model, "bidirectional", False) or any(getattr(m, "bidirectional", False) for m in model.modules()):
        return False
    result = model(**values)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], Tensor):
        return False
    before, after = _tensors(values[name]), _tensors(result[1])
    every_step = example.sizes.length in result[0].shape  # not a read-out of the last one
    return every_step and [t.shape for t in before] == [t.shape for t in after]


def _split(example: Example, first: Example) -> list[Example]:
    """Into single steps; `first`, where no other axis is as long as a sequence, says which axis counts them."""
    length = example.sizes.length
    assert length is not None

    def piece(leaf: Any, like: Any, k: int) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        axis = next((axis for axis, name in first.axes(like).items() if name == FREE[0]), None)
        return leaf if axis is None else leaf.narrow(axis, k, 1)

    sizes = example.sizes._replace(length=1)
    values = [
        {
            name: pytree.tree_map(lambda leaf, like, k=k: piece(leaf, like, k), value, first.values[name])
            for name, value in example.values.items()
        }
        for k in range(length)
    ]
    return [Example(one, sizes) for one in values]


def _case(
    ours: list[Tensor],
    theirs: list[Tensor],
    inputs: str,
    way: str,
    given: bool,
    seconds: float,
    our_seconds: float,
) -> Case:
    if len(ours) != len(theirs):
        raise ExportError(f"expected {len(ours)} outputs of the artefact, got {len(theirs)}")
    largest, relative, total, count = 0.0, 0.0, 0.0, 0
    for one, other in zip(ours, theirs, strict=True):
        one, other = (torch.view_as_real(t) if t.is_complex() else t for t in (one, other))
        if tuple(one.shape) != tuple(other.shape):
            raise ExportError(f"expected an output of shape {tuple(one.shape)}, got {tuple(other.shape)} for {inputs}")
        one, other = one.double(), other.double()
        finite = one.isfinite()
        same = torch.isclose(one[~finite], other[~finite], equal_nan=True).all()
        if not (same and other[finite].isfinite().all()):
            largest = relative = float("inf")  # NaN or infinite numbers in one of them only
        elif finite.any():
            difference = (one - other)[finite].abs()
            largest = max(largest, float(difference.max()))
            relative = max(relative, float(difference.max()) / max(float(one[finite].abs().max()), 1e-30))
            total, count = total + float(difference.sum()), count + len(difference)
    return Case(inputs, way, given, largest, total / max(count, 1), relative, seconds, our_seconds)


def _timed_there(run: Run, leaves: Sequence[Tensor]) -> tuple[list[Tensor], float]:
    """In another process, without the way there."""
    found, seconds = timed(lambda: run(leaves))
    return found, getattr(run, "seconds", seconds)


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def _described(example: Example) -> str:
    return ", ".join(f"{n} {'x'.join(map(str, t.shape))}" for n, t in zip(example.names, example.leaves, strict=True))
