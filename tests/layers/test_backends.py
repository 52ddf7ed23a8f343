"""A stack and its layers have one backend, which is looked for again where the layer is loaded."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from registry import needs_library, numbers
from slimrnn import GRU, LSTM, BlockDiagonal, Dense
from slimrnn.layers import ContextSwitching, Deep, OutputRecurrent, RecurrentStack
from slimrnn.ops import native


@needs_library
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"delays": [1, 2]}], ids=str)
def test_backend_of_a_stack_is_that_of_its_layers(options: dict[str, object]) -> None:
    stack = GRU(2, 4, **options)  # type: ignore[arg-type]
    for wanted, given in (("reference", "reference"), ("auto", "native"), ("native", "native")):
        stack.backend = wanted
        assert stack.backend == given
        assert {core.backend for core in stack.cores} == {given}
        assert f"backend='{given}'" in repr(stack)
    stack.cores[0].backend = "reference"
    assert stack.backend == ("reference" if len(stack.cores) == 1 else "mixed")


@needs_library
@pytest.mark.parametrize(
    "module",
    [
        Deep(2, GRU(2, 4), 3),
        ContextSwitching(GRU(2, 4, structure=BlockDiagonal(2))),
        OutputRecurrent(2, 4, 3),
        OutputRecurrent(2, 4, 3, hidden_recurrence=Dense()),
    ],
    ids=lambda module: type(module).__name__,
)
def test_backend_of_what_is_around_layers_is_theirs(module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    x, run = torch.zeros(3, 1, 2), native.scan
    calls: list[object] = []

    def counted(*given: Any) -> Any:
        calls.append(given)
        return run(*given)

    monkeypatch.setattr(native, "scan", counted)
    options = {"targets": torch.zeros(3, 1, 3)} if isinstance(module, OutputRecurrent) else {}
    for wanted, given in (("reference", "reference"), ("auto", "native"), ("reference", "reference")):
        module.backend = wanted  # type: ignore[assignment]
        for each in (module, copy.deepcopy(module)):
            assert each.backend == given
            calls.clear()
            each(x)
            assert bool(calls) == (given == "native")
            calls.clear()
            each(x, **options)
            assert given == "native" or not calls


def test_unknown_backends_are_refused() -> None:
    stack = LSTM(2, 4)
    before = stack.backend
    for each in (stack, stack.layer(0)):
        with pytest.raises(ValueError, match=r"expected backend to be one of .*, got 'fast'"):
            each.backend = "fast"
    assert stack.backend == before


def python(code: str, *arguments: str, library: str | None = None) -> str:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    if library is not None:
        environment["SLIMRNN_LIBRARY"] = library
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOAD = """
import copy, pickle, sys, torch
loaded = [torch.load(sys.argv[1], weights_only=False), pickle.load(open(sys.argv[2], "rb"))]
for stack in (*loaded, copy.deepcopy(loaded[0])):
    assert {core.backend for core in stack.cores} == {stack.backend}
    stack(torch.zeros(1, 1, 2))
    print(repr(stack))
"""
SAVE = """
import sys, torch, slimrnn
torch.save(slimrnn.GRU(2, 4, 2), sys.argv[1])
"""


@needs_library
@pytest.mark.parametrize("wanted", ["auto", "native"])
def test_layers_loaded_without_a_library_say_so(wanted: str, tmp_path: Path) -> None:
    stack = GRU(2, 4, 2, backend=wanted)
    torch.save(stack, tmp_path / "saved")
    (tmp_path / "pickled").write_bytes(pickle.dumps(stack))
    said = python(LOAD, str(tmp_path / "saved"), str(tmp_path / "pickled"), library="nowhere.so")
    assert said.count("backend='reference'") == 3


@needs_library
def test_layers_made_without_a_library_find_one_where_they_are_loaded(tmp_path: Path) -> None:
    python(SAVE, str(tmp_path / "saved"), library="nowhere.so")
    assert torch.load(tmp_path / "saved", weights_only=False).backend == "native"


@needs_library
def test_copies_keep_a_chosen_backend() -> None:
    stack = GRU(2, 4, backend="reference")
    assert copy.deepcopy(stack).backend == "reference"
    assert pickle.loads(pickle.dumps(stack)).backend == "reference"


# --- half precision -------------------------------------------------------------------------------------------------


def said(stack: RecurrentStack, dtype: torch.dtype, how: str) -> list[str]:
    """The warnings of two calls."""
    native._tell_once.cache_clear()
    x = numbers(3, 2, 2).to(dtype)
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        for _ in range(2):
            stack(x) if how == "forward" else stack.step(x[0], stack.initial_state(2))
    return [str(warning.message) for warning in caught]


@needs_library
@pytest.mark.parametrize("how", ["forward", "step"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_called_slow_once(dtype: torch.dtype, how: str) -> None:
    (message,) = said(GRU(2, 4, 2, dtype=dtype), dtype, how)
    assert message.startswith(f"a layer in {dtype} runs in plain torch on a CPU, many times slower than in float32: ")
    assert said(GRU(2, 4, 2, dtype=dtype, backend="reference"), dtype, how) == []  # that was chosen
    assert said(GRU(2, 4, 2), torch.float32, how) == []


def test_autocast_is_not_called_slow() -> None:
    net = nn.ModuleList([GRU(2, 4), nn.Linear(4, 1)])
    with torch.autocast("cpu", dtype=torch.bfloat16):  # warnings are errors here
        net[1](net[0](torch.randn(3, 2, 2))[0])
        net[0](torch.randn(3, 2, 2).bfloat16())
