"""A pool's streams: outputs of `rnn.step`, whoever shares the batch, and every way to hand frames in."""

from __future__ import annotations

import asyncio
import copy
import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from registry import CELLS, FEW_PAIRS, STRUCTURES, needs_library, numbers, randomise_
from slimrnn import GRU, LSTM, RNN, ReadOut, StreamPool
from slimrnn.layers import RecurrentStack

pytestmark = needs_library
INPUT, HIDDEN, TIME = 3, 12, 4
DEEP = [case for case in CELLS if "deep" in case]  # several transitions: not for pools


def parts(state: Any) -> tuple[Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


@torch.no_grad()
def alone(stack: RecurrentStack, x_TI: Tensor) -> Tensor:
    """One stream, step by step."""
    state, outputs = None, []
    for x in x_TI:
        y, state = stack.step(x[None], state)
        outputs.append(y[0])
    return torch.stack(outputs)


@pytest.mark.parametrize(("cell", "structure"), [pair for pair in FEW_PAIRS if pair[0] not in DEEP])
def test_outputs_are_those_of_steps_bit_for_bit(cell: str, structure: str) -> None:
    stack = randomise_(CELLS[cell].build(INPUT, HIDDEN, structure=STRUCTURES[structure])).eval()
    x = numbers(TIME, 5, INPUT)
    with StreamPool(stack, capacity=5, threads=1) as pool:
        streams = [pool.open() for _ in range(5)]
        found = torch.stack([pool.step_many(streams, x_t) for x_t in x])
    for k in range(5):
        assert torch.equal(found[:, k], alone(stack, x[:, k]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layer", [LSTM(INPUT, 40, num_layers=2, residual=True), GRU(INPUT, 33, reset="before")])
def test_a_row_is_the_same_in_batches_of_any_size(layer: RecurrentStack, dtype: torch.dtype) -> None:
    stack = randomise_(copy.deepcopy(layer)).to(dtype).eval()
    x = torch.randn(70, INPUT, dtype=dtype)
    with StreamPool(stack, capacity=70, threads=1, max_batch=70) as pool:
        one_by_one = torch.stack([pool.step(stream, x_t) for stream, x_t in zip(opened(pool, 70), x, strict=True)])
        for batch in range(1, 71):
            streams = opened(pool, batch)
            order = torch.randperm(70)[:batch]
            assert torch.equal(pool.step_many(streams, x[order]), one_by_one[order])
        assert pool.stats().largest_batch == 70


def opened(pool: StreamPool, count: int) -> list[int]:
    """New streams, after all others were closed."""
    for stream in getattr(pool, "streams_of_test", []):
        pool.close(stream)
    streams = [pool.open() for _ in range(count)]
    pool.streams_of_test = streams  # type: ignore[attr-defined]
    return streams


def test_learned_initial_states_and_complex_ones() -> None:
    for stack in (LSTM(2, 6, learn_initial_state=True), RNN(2, 6, nonlinearity="modrelu", learn_initial_state=True)):
        randomise_(stack).eval()
        x = torch.randn(TIME, 2)
        with StreamPool(stack, capacity=1, threads=1) as pool:
            stream = pool.open()
            assert torch.equal(torch.stack([pool.step(stream, x_t) for x_t in x]), alone(stack, x))


ACTIVATIONS = [nn.ReLU(), nn.Tanh(), nn.Sigmoid(), nn.LeakyReLU(0.1), nn.SiLU(), nn.Softplus(), nn.LayerNorm(4)]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda module: type(module).__name__)
def test_read_outs_are_those_of_torch(activation: nn.Module) -> None:
    rnn, linear = GRU(2, 6).double(), nn.Linear(6, 4).double()
    model = [rnn, nn.Dropout(), linear, activation.double(), nn.Sequential(nn.Linear(4, 1, bias=False).double())]
    x = numbers(TIME, 2)
    with torch.no_grad():
        wanted = model[4](activation(linear(rnn(x)[0])))
    for given in (model, nn.Sequential(*model)):
        with StreamPool(given, capacity=1, threads=1) as pool:
            stream = pool.open()
            found = torch.stack([pool.step(stream, x_t) for x_t in x])
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_an_activation_may_follow_a_recurrent_layer() -> None:
    rnn = GRU(2, 5)
    read_out = ReadOut(rnn, 3)
    with StreamPool([rnn, nn.ReLU(), read_out], capacity=1, threads=1) as pool:
        x = torch.randn(2)
        torch.testing.assert_close(pool.step(pool.open(), x), read_out(torch.relu(rnn(x[None])[0]))[0])


def test_later_changes_of_the_model_are_not_seen() -> None:
    rnn, x = GRU(2, 4), torch.randn(2)
    rnn.train()
    pool = StreamPool(rnn, capacity=2, threads=1)
    before = pool.step(pool.open(), x)
    with torch.no_grad():
        for p in rnn.parameters():
            p.zero_()
    assert rnn.training
    assert torch.equal(pool.step(pool.open(), x), before)
    pool.shutdown()


# --- ways to hand frames in -----------------------------------------------------------------------------------------


def test_tickets_are_in_the_order_of_submission() -> None:
    rnn, x = LSTM(2, 4).eval(), torch.randn(30, 2)
    with StreamPool(rnn, capacity=2, threads=2) as pool:
        stream = pool.open()
        tickets = [pool.submit(stream, x_t) for x_t in x]
        assert torch.equal(torch.stack([t.result(60) for t in tickets]), alone(rnn, x))
        assert tickets[0].done()
        assert torch.equal(tickets[0].result(), tickets[0].result())


def test_a_stream_may_come_again_in_one_call() -> None:
    rnn, x = GRU(2, 4).eval(), torch.randn(6, 2)
    with StreamPool(rnn, capacity=2, threads=2) as pool:
        a, b = pool.open(), pool.open()
        found = pool.step_many([a, b, a, a, b, a], x)
        assert torch.equal(found[[0, 2, 3, 5]], alone(rnn, x[[0, 2, 3, 5]]))
        assert torch.equal(found[[1, 4]], alone(rnn, x[[1, 4]]))


def test_coroutines_get_what_steps_give() -> None:
    rnn, x = GRU(2, 4).eval(), torch.randn(20, 3, 2)

    async def client(pool: StreamPool, number: int) -> Tensor:
        stream = pool.open()
        return torch.stack([await pool.step_async(stream, x_t) for x_t in x[:, number]])

    async def all_clients(pool: StreamPool) -> list[Tensor]:
        return await asyncio.gather(*(client(pool, number) for number in range(3)))

    with StreamPool(rnn, capacity=3, threads=1) as pool:
        for _ in range(2):  # two event loops, one after the other
            for number, found in enumerate(asyncio.run(all_clients(pool))):
                assert torch.equal(found, alone(rnn, x[:, number]))
            pool = StreamPool(rnn, capacity=3, threads=1)
        pool.shutdown()


def test_many_threads_do_not_mix_streams() -> None:
    rnn, failures = LSTM(2, 5).eval(), list[int]()
    pool = StreamPool(rnn, capacity=12, threads=2, max_pending=200)

    def client(number: int) -> None:
        draw = torch.Generator().manual_seed(number)
        for _ in range(10):
            stream, x = pool.open(), torch.randn(15, 2, generator=draw)
            tickets = [pool.submit(stream, x_t) for x_t in x[:10]]
            found = [ticket.result(60) for ticket in tickets] + [pool.step(stream, x_t) for x_t in x[10:]]
            if not torch.equal(torch.stack(found), alone(rnn, x)):
                failures.append(number)
            pool.close(stream)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    stats = pool.stats()
    pool.shutdown()
    assert not failures
    assert (stats.frames, stats.failed, stats.open, stats.waiting) == (12 * 10 * 15, 0, 0, 0)


def test_frames_wait_for_others_until_the_delay_is_over() -> None:
    rnn, x = GRU(2, 4).eval(), torch.randn(4, 2)
    with StreamPool(rnn, capacity=4, threads=1, max_delay=0.2, max_batch=4) as pool:
        streams = [pool.open() for _ in range(4)]
        for ticket in [pool.submit(stream, x_t) for stream, x_t in zip(streams[:3], x, strict=False)]:
            ticket.result(60)
        assert pool.stats(start_again=True).batch_sizes == {2: 1}  # all three together
        for ticket in [pool.submit(stream, x_t) for stream, x_t in zip(streams, x, strict=True)]:
            ticket.result(60)
        assert pool.stats().batch_sizes == {4: 1}


def test_stats_count_frames_batches_and_latencies() -> None:
    with StreamPool(GRU(2, 4), capacity=9, threads=1) as pool:
        streams = [pool.open() for _ in range(8)]
        for _ in range(5):
            pool.step_many(streams, torch.randn(8, 2))
        stats = pool.stats(start_again=True)
        assert (stats.open, stats.capacity, stats.frames, stats.failed, stats.waiting) == (8, 9, 40, 0, 0)
        assert (stats.batches, stats.largest_batch, stats.batch_sizes, stats.mean_batch) == (5, 8, {8: 5}, 8)
        assert 0 < stats.p50 <= stats.p90 <= stats.p99 <= stats.p999 <= stats.longest <= stats.seconds
        assert stats.frames_per_second > 0
        assert pool.stats().frames == 0
