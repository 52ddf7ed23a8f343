"""examples/stream_server.py: real processes on 127.0.0.1, and real clients."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

import slimrnn
from pages import DOCS
from registry import needs_library, randomise_
from slimrnn import GRU, Diagonal
from stream_servers import INPUT, Server, as_bytes, ask, frames, listening, scores, started, wanted

pytestmark = needs_library
HIDDEN = 1024  # a small step with large outputs, which fill buffers soon
CLIENTS = 4
SAVE = json.dumps({"save": True})


@pytest.fixture(scope="module")
def rnn() -> GRU:
    torch.manual_seed(0)
    layer = GRU(INPUT, HIDDEN, structure=Diagonal()).eval()
    randomise_(layer)
    return layer


@pytest.fixture(scope="module")
def servers(rnn: GRU, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """Two that stay, and one for the test of its end."""
    folder = tmp_path_factory.mktemp("server") / "model"
    slimrnn.save(rnn, folder)
    processes = [started("--model", str(folder), "--max-clients", str(CLIENTS)) for _ in range(3)]
    try:
        yield [listening(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
        complaints = [process.communicate()[1] for process in processes if process.stderr and not process.stderr.closed]
    assert not any(complaints), complaints


@pytest.fixture
def server(servers: list[Server]) -> Iterator[Server]:
    """It has no clients and no streams after a test."""
    yield servers[0]
    assert servers[0].process.poll() is None
    found = asyncio.run(servers[0].until(lambda page: page["clients"] == page["streams"] == 0))
    assert found["status"] == "ok"


def in_time(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_scores_are_those_of_steps_bit_for_bit(server: Server, rnn: GRU) -> None:
    async def work() -> None:
        x = frames(20)
        async with server.client() as client:
            assert json.loads(await client.recv()) == {"inputs": INPUT, "outputs": HIDDEN}
            assert await scores(client, x) == wanted(rnn, x)

    in_time(work())


def test_a_killed_client_is_forgotten_and_others_go_on(server: Server, rnn: GRU) -> None:
    async def talk(client: ClientConnection, seed: int, x: Tensor) -> None:
        await client.recv()
        assert await scores(client, x[:10]) == wanted(rnn, x)[:10]
        if seed == 0:
            await client.send(as_bytes(x[10]))
            client.transport.abort()  # in the middle: the answer is on its way
            return
        await server.until(lambda page: page["streams"] == page["clients"] == CLIENTS - 1)
        assert await scores(client, x[10:]) == wanted(rnn, x)[10:]

    async def work() -> None:
        clients = [await server.client() for _ in range(CLIENTS)]
        await server.until(lambda page: page["streams"] == CLIENTS)
        await asyncio.gather(*(talk(client, seed, frames(30, seed)) for seed, client in enumerate(clients)))
        for client in clients:
            await client.close()

    in_time(work())


def test_too_many_clients_are_refused_until_one_leaves(server: Server) -> None:
    async def work() -> None:
        clients = [await server.client() for _ in range(CLIENTS)]
        for path in ("/", "/load"):
            with pytest.raises(InvalidStatus) as refused:
                await server.client(path)
            assert refused.value.response.status_code == 503
            assert b"expected at most 4 clients, got one more" in (refused.value.response.body or b"")
        await clients.pop().close()
        await server.until(lambda page: page["clients"] == CLIENTS - 1)
        clients.append(await server.client())
        for client in clients:
            await client.close()

    in_time(work())


def test_clients_that_come_at_once_are_not_more_than_allowed(server: Server) -> None:
    async def welcomed() -> bool:
        try:
            async with server.client() as client:
                assert "inputs" in json.loads(await client.recv())
                await asyncio.sleep(0.5)
                return True
        except InvalidStatus as refused:
            return refused.response.status_code != 503

    async def work() -> None:
        assert sum(await asyncio.gather(*(welcomed() for _ in range(5 * CLIENTS)))) == CLIENTS

    in_time(work())


def test_messages_that_do_not_fit_have_an_answer_and_leave_the_stream_as_it_was(server: Server, rnn: GRU) -> None:
    x = frames(2)
    nan = torch.tensor([0, torch.nan, 0])
    bad: list[tuple[str | bytes, str]] = [
        (as_bytes(x[0])[:-1], "expected a frame of 12 bytes, float32, got 11 bytes"),
        (as_bytes(x), "expected a frame of 12 bytes, float32, got 24 bytes"),
        (b"", "expected a frame of 12 bytes, float32, got 0 bytes"),
        (as_bytes(nan), "expected finite numbers"),
        (as_bytes(nan.nan_to_num(torch.inf)), "expected finite numbers"),
        ("save", """expected a binary frame or {"save": true}, got the text 'save'"""),
        ("[" * 10_000, "got the text '[[["),
        ('{"save": 2}', "expected a binary frame"),
    ]

    async def work() -> None:
        async with server.client() as client:
            await client.recv()
            found = await scores(client, x[:1])
            for message, complaint in bad:
                assert complaint in (await ask(client, message))["error"]
            assert found + await scores(client, x[1:]) == wanted(rnn, x)

    in_time(work())


def test_a_message_that_is_much_too_long_ends_only_its_connection(server: Server, rnn: GRU) -> None:
    async def work() -> None:
        x = frames(4)
        async with server.client() as good, server.client() as bad:
            await good.recv()
            await bad.recv()
            found = await scores(good, x[:2])
            await bad.send(bytes(2**20))
            with pytest.raises(ConnectionClosed, match="1009"):
                await bad.recv()
            assert found + await scores(good, x[2:]) == wanted(rnn, x)

    in_time(work())


def test_a_client_that_does_not_read_has_to_wait_and_gets_all_answers_later(server: Server, rnn: GRU) -> None:
    """The server runs no more frames than the network's buffers take answers."""
    count = 4000  # 16 MB of answers

    async def work() -> None:
        x = frames(count)
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.connect(("127.0.0.1", server.port))
        before = server.health()["frames"]
        async with server.client(sock=narrow, max_queue=1, ping_interval=None) as slow, server.client() as other:
            sending = asyncio.create_task(send_all(slow, x))
            await other.recv()
            done = [before, await frames_after(0.3)]
            while done[-1] == before or done[-1] != done[-2]:
                done.append(await frames_after(0.3))
            assert done[-1] - before < count // 2
            assert await scores(other, x[:20]) == wanted(rnn, x[:20])
            assert await frames_after(0.3) - before < count // 2
            await slow.recv()
            assert [await slow.recv() for _ in range(count)] == wanted(rnn, x)
            await sending

    async def frames_after(seconds: float) -> int:
        await asyncio.sleep(seconds)
        return int((await asyncio.to_thread(server.health))["frames"])

    async def send_all(client: ClientConnection, x_TI: Tensor) -> None:
        for x in x_TI:
            await client.send(as_bytes(x))

    in_time(work())


def test_a_stream_goes_on_in_another_process_bit_for_bit(server: Server, servers: list[Server], rnn: GRU) -> None:
    async def work() -> None:
        x = frames(12)
        async with server.client() as here, servers[1].client("/load") as there:
            await here.recv()
            found = await scores(here, x[:5])
            state = await ask(here, SAVE)
            assert await ask(there, state) == {"inputs": INPUT, "outputs": HIDDEN}
            assert found + await scores(there, x[5:]) == wanted(rnn, x)
            assert found + await scores(here, x[5:]) == wanted(rnn, x)  # this one was not changed
            assert await ask(there, SAVE) == await ask(here, SAVE)

    in_time(work())


def test_a_state_that_is_none_is_refused(server: Server) -> None:
    async def work() -> None:
        async with server.client() as client:
            await client.recv()
            state = await ask(client, SAVE)
        for message in (b"", state[:-1], bytes([state[0] ^ 1]) + state[1:], "text"):
            async with server.client("/load") as client:
                assert "expected" in (await ask(client, message))["error"]
                with pytest.raises(ConnectionClosed, match="1008"):
                    await client.recv()

    in_time(work())


def test_the_health_page_has_throughput_and_latencies(server: Server) -> None:
    async def work() -> None:
        before = server.health()["frames"]
        async with server.client() as client:
            await client.recv()
            await scores(client, frames(10))
            status, kind, text = await asyncio.to_thread(server.page)
        page = json.loads(text)
        assert (status, kind, page["status"]) == (200, "application/json", "ok")
        assert (page["clients"], page["max_clients"], page["streams"]) == (1, CLIENTS, 1)
        assert page["frames"] == before + 10
        assert page["frames_per_second"] >= 0
        latencies = list(page["latency_ms"].values())
        assert len(latencies) == 5
        assert latencies == sorted(latencies)
        assert server.page("/other")[::2] == (404, "expected /, /load or /health, got /other\n")

    in_time(work())


def test_the_client_of_the_docs_talks_to_the_demo_net(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```py\n(.*?)```", (DOCS / "serving.md").read_text(), re.DOTALL)
    process = started("--max-clients", "1")
    try:
        port = listening(process).port
        exec(compile(code.replace("8765", str(port)), "serving.md", "exec", dont_inherit=True), {})
    finally:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0
    assert re.fullmatch(r'\{"inputs": 40, "outputs": 1\}\n\[0\.\d+\]\n', capsys.readouterr().out)


def test_a_server_that_is_told_to_end_gives_clients_their_states(servers: list[Server], rnn: GRU) -> None:
    first, other, ending = servers

    async def work() -> None:
        x = frames(9)
        async with ending.client() as client, ending.client("/load") as silent, other.client("/load") as there:
            await client.recv()
            found = await scores(client, x[:6])
            ending.process.send_signal(signal.SIGTERM)
            assert json.loads(await client.recv()) == {"leaving": True}
            state = await client.recv()
            for each in (client, silent):
                with pytest.raises(ConnectionClosed, match="1001"):
                    await each.recv()
            await ask(there, state)
            assert found + await scores(there, x[6:]) == wanted(rnn, x)

    in_time(work())
    complaints = ending.process.communicate(timeout=30)[1]
    assert (ending.process.returncode, complaints) == (0, "")
    assert first.process.poll() is None
