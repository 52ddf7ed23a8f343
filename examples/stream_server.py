"""A WebSocket server over a StreamPool: every connection is a stream, frames come in and scores go out.

    python -m pip install -r examples/requirements.txt
    python examples/stream_server.py --model DIRECTORY

A client of ws://127.0.0.1:8765/ first gets {"inputs": 40, "outputs": 1}. Then each message has one answer, in order:

    a frame, float32, binary   ->  the model's outputs, float32, binary
    {"save": true}             ->  the stream's state, binary
    anything else              ->  {"error": "expected ..., got ..."}, and the stream stays as it was

A connection to /load first sends a saved state, maybe of another server with the same model, and goes on from there.
When the server is told to end (SIGTERM), it sends {"leaving": true} and then the state to every client.
http://127.0.0.1:8765/health has clients, throughput and latencies as JSON.
"""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import nn
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

import slimrnn
from slimrnn import LSTM, StreamPool
from slimrnn.errors import NotFinite, PoolError
from slimrnn.serving import PoolStats

LEAST_ROOM = 2**14  # bytes of a message: those that are not much too long have an answer that says what is wrong
QUEUE = 4  # messages of a client that wait; more stay in the network's buffers, and its sender has to wait
SECONDS_TO_LEAVE = 5.0
PERIOD = 10.0  # seconds that throughput and latencies of the health page are taken over


class StreamServer:
    def __init__(self, pool: StreamPool) -> None:
        self.pool = pool
        self.clients: dict[ServerConnection, asyncio.Lock] = {}  # locked until a message is answered
        self.streams: dict[ServerConnection, int] = {}
        self.leaving = False
        self.last_period: PoolStats | None = None
        self.frames = 0  # until its end
        stream = pool.open()
        self.max_size = max(LEAST_ROOM, 4 * pool.input_size, len(pool.save(stream)))
        pool.close(stream)

    async def talk(self, connection: ServerConnection) -> None:
        """From the first message to the last. The next one is read when the last answer was taken by the network."""
        turn = self.clients[connection] = asyncio.Lock()
        try:
            with suppress(ConnectionClosed):
                try:
                    stream = self.streams[connection] = await self.begin(connection)
                except PoolError as error:  # say, a state of another model
                    await connection.send(error_of(error))
                    await connection.close(CloseCode.POLICY_VIOLATION)
                    return
                await connection.send(json.dumps({"inputs": self.pool.input_size, "outputs": self.pool.output_size}))
                async for message in connection:
                    async with turn:
                        await connection.send(await self.answer(stream, message))
        finally:
            del self.clients[connection]
            if connection in self.streams:
                self.pool.close(self.streams.pop(connection))

    async def begin(self, connection: ServerConnection) -> int:
        if connection.request is not None and connection.request.path == "/load":
            return self.pool.load(await connection.recv(decode=False))
        return self.pool.open()

    async def answer(self, stream: int, message: str | bytes) -> str | bytes:
        wanted = 4 * self.pool.input_size
        if isinstance(message, str):
            if is_save(message):
                return self.pool.save(stream)
            return error_of(f'expected a binary frame or {{"save": true}}, got the text {message[:40]!r}')
        if len(message) != wanted:
            return error_of(f"expected a frame of {wanted} bytes, float32, got {len(message)} bytes")
        frame = torch.frombuffer(bytearray(message), dtype=torch.float32).to(self.pool.dtype)
        try:
            return (await self.pool.step_async(stream, frame)).float().numpy().tobytes()
        except NotFinite as error:
            return error_of(error)

    def refusal(self) -> str | None:
        if self.leaving:
            return "this server is about to end: try another one"
        if len(self.clients) >= self.pool.capacity:
            return f"expected at most {self.pool.capacity} clients, got one more: try again later, or another server"
        return None

    def reply(self, connection: ServerConnection, request: Request) -> Response | None:
        """To requests that do not become a stream; load balancers read the status of the health page."""
        path, refusal = request.path, self.refusal()
        if path == "/health":
            page = connection.respond(503 if self.leaving else 200, json.dumps(self.health()) + "\n")
            del page.headers["Content-Type"]
            page.headers["Content-Type"] = "application/json"
            return page
        if path not in ("/", "/load"):
            return connection.respond(404, f"expected /, /load or /health, got {path}\n")
        return connection.respond(503, refusal + "\n") if refusal else None

    def health(self) -> dict[str, object]:
        """Throughput and latencies are those of the last whole period, or of the first so far."""
        now = self.pool.stats()
        period = self.last_period or now
        return {
            "status": "leaving" if self.leaving else "ok",
            "clients": len(self.clients),
            "max_clients": self.pool.capacity,
            "streams": now.open,
            "frames": self.frames + now.frames,
            "frames_per_second": period.frames_per_second,
            "latency_ms": {name: 1e3 * getattr(period, name) for name in ("p50", "p90", "p99", "p999", "longest")},
        }

    async def count(self) -> None:
        while True:
            await asyncio.sleep(PERIOD)
            self.last_period = self.pool.stats(start_again=True)
            self.frames += self.last_period.frames

    async def dismiss(self, connection: ServerConnection, turn: asyncio.Lock) -> None:
        """Give the client its state, after the answer that is on its way, so that it can go on elsewhere."""
        with suppress(ConnectionClosed):
            async with turn:
                if connection in self.streams:
                    state = self.pool.save(self.streams[connection])
                    await connection.send(json.dumps({"leaving": True}))
                    await connection.send(state)
                await connection.close(CloseCode.GOING_AWAY)

    async def leave(self) -> None:
        self.leaving = True
        tasks = [asyncio.create_task(self.dismiss(*each)) for each in self.clients.items()]
        if tasks:
            await asyncio.wait(tasks, timeout=SECONDS_TO_LEAVE)
        for connection in self.clients:  # which do not read
            connection.transport.abort()


def error_of(what: object) -> str:
    return json.dumps({"error": str(what)})


def is_save(message: str) -> bool:
    with suppress(ValueError, RecursionError):
        return bool(json.loads(message) == {"save": True})
    return False


async def run(server: StreamServer, host: str, port: int) -> None:
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(end.set))
    limits: Any = {"max_size": server.max_size, "max_queue": QUEUE, "close_timeout": SECONDS_TO_LEAVE}
    async with serve(server.talk, host, port, process_request=server.reply, compression=None, **limits) as listening:
        port = listening.sockets[0].getsockname()[1]
        print(f"streams: ws://{host}:{port}/  health page: http://{host}:{port}/health", flush=True)
        periods = asyncio.create_task(server.count())
        await end.wait()
        periods.cancel()
        await server.leave()


def main(model: Path | None = None, host: str = "127.0.0.1", port: int = 8765, max_clients: int = 1000) -> None:
    """Serve a model to WebSocket clients, until SIGTERM or Ctrl-C.

    Args:
        model: directory that slimrnn.save wrote; without it, an untrained net for 40 inputs
        host: address to listen on
        port: 0: one that is free
        max_clients: at once
    """
    torch.manual_seed(0)  # the untrained net is the same in every process
    net = slimrnn.load(model) if model else nn.Sequential(LSTM(40, 128), nn.Linear(128, 1), nn.Sigmoid())
    with StreamPool(net, capacity=max_clients) as pool:
        asyncio.run(run(StreamServer(pool), host, port))


if __name__ == "__main__":
    tyro.cli(main)
