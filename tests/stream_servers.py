"""Processes of examples/stream_server.py, and what its clients say and want to hear."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from websockets.asyncio.client import ClientConnection, connect

from slimrnn import GRU

SCRIPT = Path(__file__).parents[1] / "examples" / "stream_server.py"
INPUT = 3


class Server(NamedTuple):
    process: subprocess.Popen[str]
    port: int

    def client(self, path: str = "/", **options: Any) -> connect:
        return connect(f"ws://127.0.0.1:{self.port}{path}", proxy=None, compression=None, **options)

    def page(self, path: str = "/health") -> tuple[int, str, str]:
        """Status, type and text."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self.port}{path}", timeout=30) as found:
                return found.status, found.headers["Content-Type"], found.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()

    def health(self) -> dict[str, Any]:
        return dict(json.loads(self.page()[2]))

    async def until(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The health page, when it shows this."""
        end = time.monotonic() + 30
        while not reached(found := await asyncio.to_thread(self.health)):
            assert time.monotonic() < end, found
            await asyncio.sleep(0.02)
        return found


def started(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), "--port", "0", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def listening(process: subprocess.Popen[str]) -> Server:
    assert process.stdout
    assert process.stderr
    line = process.stdout.readline()
    found = re.match(r"streams: ws://127\.0\.0\.1:(\d+)/ ", line)
    assert found, line + process.stderr.read()
    return Server(process, int(found[1]))


@torch.no_grad()
def wanted(rnn: GRU, x_TI: Tensor) -> list[bytes]:
    state, outputs = None, []
    for x in x_TI:
        y, state = rnn.step(x[None], state)
        outputs.append(as_bytes(y[0]))
    return outputs


def as_bytes(x: Tensor) -> bytes:
    return bytes(x.numpy().tobytes())


def frames(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, INPUT, generator=torch.Generator().manual_seed(seed))


async def ask(client: ClientConnection, message: str | bytes) -> Any:
    """The answer: bytes, or what a text says."""
    await client.send(message)
    found = await client.recv()
    return json.loads(found) if isinstance(found, str) else found


async def scores(client: ClientConnection, x_TI: Tensor) -> list[bytes]:
    return [await ask(client, as_bytes(x)) for x in x_TI]
