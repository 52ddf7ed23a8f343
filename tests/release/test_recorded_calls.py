"""Calls that were recorded in Python give the same numbers when a program in C repeats them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import calls
from registry import needs_library, numbers
from slimrnn import GRU, LSTM, RNN, Diagonal, Kronecker, LowRank
from slimrnn.ops.library import library_path

PROJECT = Path(__file__).parents[2]
COMPILER = shutil.which("cc")


def some_layers(recorder: calls.Recorder) -> None:
    """A compiled cell, bytecode and complex numbers; ragged and not; forward, backward and a step."""
    for rnn in (
        GRU(2, 6, structure=LowRank(2) + Diagonal(), reset="before", backend="native"),
        LSTM(2, 6, leak=0.3, backend="native"),
        RNN(2, 6, nonlinearity="modrelu", structure=Kronecker([2, 3]), backend="native"),
    ):
        for dtype, lengths in ((torch.float64, [4, 2, 1]), (torch.float32, None)):
            rnn, recorder.case = rnn.to(dtype), f"{rnn} {dtype}"
            rnn(numbers(4, 3, 2).to(dtype), lengths=lengths)[0].sum().backward()
            with torch.no_grad():
                rnn.step(numbers(3, 2).to(dtype), rnn.initial_state(3))


@needs_library
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_driver_repeats_recorded_calls(tmp_path: Path) -> None:
    with calls.recording() as recorder:
        some_layers(recorder)
    recorder.write(tmp_path)
    assert len(recorder.calls) == 3 * 2 * 3
    driver, results, library = tmp_path / "driver", tmp_path / "results", library_path()
    source, include = PROJECT / "release/driver.c", PROJECT / "csrc/include"
    subprocess.run([str(COMPILER), "-std=gnu11", "-I", include, source, "-ldl", "-o", driver], check=True)
    assert library is not None
    told = subprocess.check_output([driver, library, tmp_path / "calls.bin", results], text=True)
    assert "18 calls on " in told
    found = calls.differences(tmp_path, results.read_bytes())
    assert found.keys() == {"float64", "float32"}
    for dtype, (off, where) in found.items():
        assert off <= calls.TOLERANCES[dtype], where
    spoiled = bytearray(results.read_bytes())
    spoiled[7] ^= 1  # the exponent of the first number, which is double
    assert calls.differences(tmp_path, bytes(spoiled))["float64"][0] > 1e-3
    with pytest.raises(ValueError, match="bytes of results, got"):
        calls.differences(tmp_path, b"")
