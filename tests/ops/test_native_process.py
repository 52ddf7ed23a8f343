"""The native core in a process: memory, python threads, forks, workers."""

from __future__ import annotations

import gc
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from native_cases import INPUT, Results, build, differentiate, on, start, threads
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from registry import CELLS, SIZE, needs_library, numbers
from slimrnn import LSTM, LowRank
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.ops import eager, native, operators

pytestmark = needs_library
cells = pytest.mark.parametrize("cell", CELLS)
on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the process's memory from /proc")


# --- what is kept ---------------------------------------------------------------------------------------------------


def saved(layer: RecurrentLayer, time: int) -> int:
    """Real numbers that autograd keeps of a call, without the caller's own: input, states and parameters."""
    x, state = numbers(time, 3, INPUT).requires_grad_(), tuple(s.requires_grad_() for s in start(layer, 3))
    ours = {t.untyped_storage().data_ptr() for t in (x, *state, *layer.parameters())}
    kept: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        if t.untyped_storage().data_ptr() not in ours:
            kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes() // 8
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        output, _ = layer(x, state)
    assert output.requires_grad
    return sum(kept.values())


@cells
def test_history_is_gates_and_states(cell: str) -> None:
    layer = on("native", build(cell, "low-rank"))
    width = SIZE * (2 if layer.cell.complex else 1)
    growth = saved(layer, 30) - saved(layer, 10)
    (step, *_), phases = layer.traced_steps() or [], len(layer.transitions)
    history = width * phases * ((step.native.slots if step.native.kept else 0) + layer.cell.states)
    assert growth <= 20 * 3 * (
        history + (INPUT + 1 if phases > 1 else 0)
    )  # torch takes the input product, and the bias


def test_history_of_a_structured_input_is_gates_and_states() -> None:
    layer = on("native", build("lstm", input_structure=LowRank(2)))
    growth = saved(layer, 30) - saved(layer, 10)
    assert growth <= 20 * 3 * (SIZE * (4 + 2) + 4 * 2)  # and the input's 2 numbers of every gate


@cells
def test_without_gradients_nothing_is_kept(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[list[int]] = []
    layer = on("native", build(cell))

    def spy(*arguments: Any) -> Any:
        results = operators.run_forward(*arguments)
        kept.append([t.numel() for t in results[2:]])
        return results

    x, state = numbers(3, 2, INPUT), start(layer, 2)
    for module in (native, eager):
        monkeypatch.setattr(module, "run_forward", spy)
    with torch.no_grad():
        assert not layer(x, state)[0].requires_grad
    layer.requires_grad_(False)
    assert not layer(x, state)[0].requires_grad
    assert kept == [[0, 0], [0, 0]]
    assert layer(x.requires_grad_(), state)[0].requires_grad
    assert len(kept) == 3
    (step, *_) = layer.traced_steps() or []
    assert (sum(kept[2]) > 0) == (step.native.kept > 0 or layer.cell.states > 1)


def memory(field: str) -> int:
    """Bytes: VmRSS is resident now, VmHWM the most so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))


@on_linux
def test_inference_takes_no_more_memory_than_its_output() -> None:
    layer = on("native", LSTM(1, 64).layer(0))
    x, state = torch.randn(10_000, 8, 1), layer.initial_state(8)
    size = x.shape[0] * 8 * 64 * 4  # of the output; the gates would be four of these
    with torch.no_grad():
        layer(x[:2], state)
        Path("/proc/self/clear_refs").write_text("5")  # begin VmHWM anew
        before = memory("VmRSS")
        output, _ = layer(x, state)
    assert output.untyped_storage().nbytes() == size
    assert memory("VmHWM") - before < 2 * size


@on_linux
def test_nothing_leaks() -> None:
    layers = [on("native", build(cell, s)) for cell, s in [("lstm", "kronecker-3"), ("modrelu", "low-rank+diagonal")]]
    inputs = [(numbers(2, 2, INPUT), start(layer, 2)) for layer in layers]

    def forward(repeats: int) -> None:
        with torch.no_grad():
            for _ in range(repeats):
                for layer, (x, state) in zip(layers, inputs, strict=True):
                    layer(x, state)

    def both_ways(repeats: int) -> None:
        for _ in range(repeats):
            for layer, (x, state) in zip(layers, inputs, strict=True):
                layer(x, state)[0].sum().backward()

    gc.freeze()  # what other tests left behind need not be looked through again and again
    for count, share in ((1, 1.0), (2, 0.1)):
        with threads(count):
            for run, repeats in ((forward, int(1500 * share)), (both_ways, int(300 * share))):
                # two calls each; a packed matrix is more than 64 bytes, a page is the least that shows
                assert least_growth(run, repeats) < 2 * repeats * 64 + 4096


def least_growth(run: Callable[[int], None], repeats: int) -> int:
    """How much memory grows at least: a leak shows every time, the allocators' moods do not."""
    run(repeats // 2)
    found = []
    for _ in range(3):
        gc.collect()
        before = memory("VmRSS")
        run(repeats)
        gc.collect()
        found.append(memory("VmRSS") - before)
    return min(found)


# --- threads and processes ------------------------------------------------------------------------------------------


def same(a: Results, b: Results) -> bool:
    return all(torch.equal(a[name], b[name]) for name in b)


def test_python_threads_may_share_a_layer() -> None:
    layers = [on("native", build(cell, "low-rank+diagonal", size=40)) for cell in CELLS]
    jobs = [(layer, numbers(20, 5, INPUT), start(layer, 5)) for layer in layers for _ in range(4)]
    for count in (1, 2):
        with threads(count):
            expected = [differentiate(*job) for job in jobs]
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda job: differentiate(*job), jobs))
        assert all(map(same, found, expected))


def child(layer: RecurrentLayer, x: Tensor, state: tuple[Tensor, ...], to: Connection) -> None:
    with torch.no_grad():
        output = layer(x, state)[0]  # on several threads, as in the parent
    torch.set_num_threads(1)  # as data loaders do: even torch.mm hangs on several in a forked child
    to.send([output.tolist(), {name: value.tolist() for name, value in differentiate(layer, x, state).items()}])


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_after_the_parent_used_threads() -> None:
    layer = on("native", build("gru-before", "low-rank+diagonal"))
    x, state = numbers(5, 6, INPUT), start(layer, 6)
    single = differentiate(layer, x, state)
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    with threads(3):
        expected = differentiate(layer, x, state)
        process = context.Process(target=child, args=(layer, x, state, send))
        process.start()
    answered = receive.poll(60)
    output, found = receive.recv() if answered else (None, None)
    if not answered:
        process.kill()
    process.join()
    assert answered, "the child hangs"
    assert process.exitcode == 0
    assert output == expected["output"].tolist()
    assert found == {name: value.tolist() for name, value in single.items()}


class Outputs(Dataset[Tensor]):
    """What a layer makes of some sequences."""

    def __init__(self, layer: RecurrentLayer) -> None:
        self.layer, self.x, self.state = layer, numbers(3, 5, 2, INPUT), start(layer, 2)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Tensor:
        with torch.no_grad():
            found: Tensor = self.layer(self.x[index], self.state)[0]
            return found


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_data_loader_worker_may_call_a_layer() -> None:
    with threads(2):
        data = Outputs(on("native", build("lstm", "block")))
        expected = [data[i] for i in range(3)]
        found = list(DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context="fork", timeout=60))
    assert all(map(torch.equal, found, expected))
