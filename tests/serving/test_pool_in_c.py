"""The pool's C interface: the example in C and the stress test, compiled and run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from registry import needs_library
from slimrnn import LSTM, StreamPool
from slimrnn.ops.library import library_path

ROOT = Path(__file__).parents[2]
pytestmark = [needs_library, pytest.mark.skipif(not shutil.which("g++"), reason="no g++ and gcc here")]


def run(*command: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run([str(part) for part in command], input=given, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done


def test_a_program_in_c_gives_the_same_bits(tmp_path: Path) -> None:
    model = [LSTM(3, 8, num_layers=2).eval(), nn.Linear(8, 2), nn.Sigmoid()]
    frames = torch.randn(7, 5, 3)  # of 5 streams
    with StreamPool(model, capacity=5, threads=1) as pool:
        streams = [pool.open() for _ in range(5)]
        wanted = torch.stack([pool.step_many(streams, x) for x in frames])
        pool.write(tmp_path / "model")
    source, program = ROOT / "examples" / "stream_pool.c", tmp_path / "stream_pool"
    run("gcc", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "csrc" / "include", source, "-ldl", "-o", program)
    done = run(program, library_path(), tmp_path / "model", 5, given=frames.numpy().tobytes())
    assert torch.equal(torch.frombuffer(bytearray(done.stdout), dtype=torch.float32).view(7, 5, 2), wanted)
    assert done.stderr.decode() == "35 frames in 7 batches\n"


def test_no_frame_is_lost_or_mixed_up_among_many_clients(tmp_path: Path) -> None:
    """A million under sanitizers: `make stress`."""
    with StreamPool([LSTM(3, 5), nn.Linear(5, 2)], capacity=1, threads=1) as pool:
        pool.write(tmp_path / "model")
    program = tmp_path / "stress"
    run("g++", "-std=c++17", "-O1", ROOT / "release" / "pool_stress.cpp", "-ldl", "-lpthread", "-o", program)
    done = run(program, library_path(), tmp_path / "model", 20_000)
    assert b"20000 frames of 16 clients" in done.stdout
    assert b"20000 streams opened and closed" in done.stdout


def test_damaged_models_are_refused(tmp_path: Path) -> None:
    """None of them may end the process: with the right checksum, so that the reader sees what is inside."""
    from slimrnn.errors import PoolError
    from slimrnn.serving.model_bytes import fnv, model_bytes
    from slimrnn.serving.native_pool import NativePool
    from slimrnn.serving.stages import stages_of

    whole = model_bytes(stages_of([LSTM(2, 4), nn.Linear(4, 1)]))
    options = {"capacity": 1, "max_tickets": 1, "max_batch": 1, "threads": 1}
    draw = torch.Generator().manual_seed(0)
    taken = 0
    for _ in range(300):
        body = bytearray(whole[24:])
        at = int(torch.randint(len(body), (), generator=draw))
        body[at] ^= 1 << int(torch.randint(8, (), generator=draw))
        if int(torch.randint(4, (), generator=draw)) == 0:
            del body[at:]
        damaged = whole[:16] + fnv(bytes(body)).to_bytes(8, "little") + bytes(body)
        try:
            NativePool(damaged, **options)
            taken += 1  # another number in a weight
        except (PoolError, MemoryError):
            pass
    assert taken < 250
    with pytest.raises(PoolError, match="expected a model that the native core takes"):
        NativePool(whole[:-1], **options)
