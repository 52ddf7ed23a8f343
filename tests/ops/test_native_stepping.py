"""Single native steps, whose weights are packed once: they must notice when something has changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from native_cases import ISAS, instruction_set
from torch import Tensor

from registry import CELLS, FEW_PAIRS, SIZE, STRUCTURES, needs_library, numbers, randomise_
from slimrnn import GRU
from slimrnn.layers import RecurrentStack

pytestmark = needs_library
INPUT = 4


def build(cell: str, structure: str = "dense", **options: Any) -> RecurrentStack:
    return randomise_(CELLS[cell].build(INPUT, SIZE, 2, structure=STRUCTURES[structure], **options), 0.1)


def random_state(stack: RecurrentStack, batch: int) -> Any:
    state = stack.initial_state(batch)
    parts = tuple(numbers(*s.shape, complex=s.is_complex()).to(s.dtype) for s in leaves(state))
    return parts if isinstance(state, tuple) else parts[0]


def leaves(state: Any) -> tuple[Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


def check_step(stack: RecurrentStack, x: Tensor, state: Any) -> None:
    """One step is a sequence of one."""
    with torch.no_grad():
        output, after = stack.step(x, state)
        expected, last = stack(x.unsqueeze(0), state)
    torch.testing.assert_close(output, expected[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(leaves(after), leaves(last), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)
def test_steps_are_the_reference(cell: str, structure: str, isa: str) -> None:
    stack, slow = build(cell, structure, backend="native"), build(cell, structure, backend="reference")
    slow.load_state_dict(stack.state_dict())
    for batch in (1, 3):
        x, state = numbers(batch, INPUT), random_state(stack, batch)
        before = [s.clone() for s in leaves(state)]
        with torch.no_grad(), instruction_set(isa):
            output, after = stack.step(x, state)
            expected, last = slow.step(x, state)
        torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(leaves(after), leaves(last), rtol=1e-10, atol=1e-10)
        assert all(map(torch.equal, leaves(state), before))  # the caller's own


def test_python_threads_may_step_one_layer() -> None:
    stack = build("lstm", "low-rank+diagonal")
    jobs = [(numbers(n, INPUT), random_state(stack, n)) for n in (1, 2, 2, 80) * 50]

    def step(job: tuple[Tensor, Any]) -> list[Tensor]:
        with torch.no_grad():
            output, after = stack.step(*job)
        return [output, *leaves(after)]

    expected = [step(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(step, jobs))
    assert all(all(map(torch.equal, a, b)) for a, b in zip(found, expected, strict=True))


def test_inputs_lie_anyhow() -> None:
    stack = build("lstm")
    for batch in (1, 3):
        state, x = random_state(stack, batch), numbers(batch, INPUT)
        with torch.no_grad():
            expected, _ = stack.step(x, state)
            rows, turned = x.repeat_interleave(3, 0)[::3], x.mT.contiguous().mT
            columns, same = torch.stack([x, x + 1], -1)[..., 0], x[:1].expand(batch, -1)
            for given in (rows, turned, columns):
                assert torch.equal(stack.step(given, state)[0], expected)
            assert torch.equal(stack.step(same, state)[0], stack.step(same.clone(), state)[0])
            alone, _ = stack.step(columns[0], tuple(part[:, 0] for part in leaves(state)))
        assert torch.equal(alone, expected[0])


def test_conjugate_state() -> None:
    stack = build("modrelu")
    check_step(stack, numbers(2, INPUT), random_state(stack, 2).conj())


def test_layer_made_in_inference_mode() -> None:
    with torch.inference_mode():
        stack = GRU(INPUT, SIZE, dtype=torch.float64)
        check_step(stack, numbers(2, INPUT), random_state(stack, 2))


def test_default_device_does_not_matter() -> None:
    stack = build("lstm")
    x, state = numbers(2, INPUT), random_state(stack, 2)
    with torch.device("meta"):
        check_step(stack, x, state)
