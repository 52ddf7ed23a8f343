"""Layers are ordinary torch modules."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import start_processes

from registry import CELLS, FEW_PAIRS, SIZE, STRUCTURES, numbers, randomise_
from slimrnn import GRU, LSTM, RNN, Diagonal, FullUnitary, Kronecker, LowRank, UnitaryProduct
from slimrnn.layers import RecurrentStack
from slimrnn.ops import resolve_backend

few_pairs = pytest.mark.parametrize(("cell", "structure"), FEW_PAIRS)


def build(cell: str, structure: str, **options: Any) -> RecurrentStack:
    return randomise_(CELLS[cell].build(3, SIZE, structure=STRUCTURES[structure], **options), 0.1)


def equal(a: RecurrentStack, b: RecurrentStack) -> bool:
    x = numbers(3, 2, 3).to(next(a.parameters()).dtype)
    return torch.equal(a(x)[0], b(x)[0])


@few_pairs
def test_deepcopy_and_pickle(cell: str, structure: str) -> None:
    stack = build(cell, structure, weight_norm=True, num_layers=2)
    twin = copy.deepcopy(stack)
    assert equal(stack, twin)
    again = pickle.loads(pickle.dumps(stack))
    assert equal(stack, again)
    assert repr(again) == repr(stack)
    with torch.no_grad():
        for p in twin.parameters():
            p.add_(1.0)
    assert equal(stack, again)  # nothing is shared


@few_pairs
def test_changes_precision(cell: str, structure: str) -> None:
    stack = build(cell, structure)
    x = numbers(3, 2, 3)
    expected, _ = stack(x)
    for single in (copy.deepcopy(stack).float(), copy.deepcopy(stack).to(torch.float32)):
        output, h = single(x.float())
        assert output.dtype == torch.float32
        state = h[0] if isinstance(h, tuple) else h
        assert state.dtype == (torch.complex64 if stack.cell.complex else torch.float32)
        torch.testing.assert_close(output.double(), expected, rtol=1e-4, atol=1e-4)
        output, _ = single.double()(x)
        torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("structure", ["dense", "low-rank+diagonal", "block", "kronecker-3"])
@pytest.mark.filterwarnings("ignore:a layer in torch.*float16 runs in plain torch")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_runs(structure: str, dtype: torch.dtype) -> None:
    stack = LSTM(3, SIZE, structure=STRUCTURES[structure]).to(dtype)
    output, _ = stack(torch.randn(3, 2, 3, dtype=dtype))
    assert output.dtype == dtype
    assert torch.isfinite(output).all()


@pytest.mark.parametrize("cell", CELLS)
def test_autocast_does_not_break(cell: str) -> None:
    stack = CELLS[cell].build(3, SIZE, 2, dtype=torch.float32)
    x = torch.randn(4, 2, 3)
    expected, _ = stack(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside, _ = stack(x)
        from_half, _ = stack(x.bfloat16())
        stepped, _ = stack.step(x[0].bfloat16())
        loss = nn.Linear(stack.output_size, 1)(inside).sum()
    loss.backward()  # outside, as torch asks for
    assert torch.equal(inside, expected)  # the recurrence keeps its precision
    assert stepped.dtype == torch.float32
    torch.testing.assert_close(from_half, expected, rtol=0.1, atol=0.1)
    assert all(p.grad is not None for p in stack.parameters())


@pytest.mark.parametrize("cell", [name for name in CELLS if "transition_depth" not in CELLS[name].options])
def test_backward_inside_autocast_keeps_its_precision(cell: str) -> None:
    stack, x = CELLS[cell].build(3, SIZE, 2), numbers(4, 2, 3).requires_grad_()
    wanted = [x, *stack.parameters()]
    expected = torch.autograd.grad(stack(x)[0].sum(), wanted)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.autograd.grad(stack(x)[0].sum(), wanted)
    assert all(torch.equal(a, b) for a, b in zip(inside, expected, strict=True))


@pytest.mark.parametrize(
    "stack",
    [
        GRU(3, 8, structure=LowRank(2) + Diagonal(), reset="before"),
        LSTM(3, 8, 2, bidirectional=True, weight_norm=True),
        RNN(3, 8, nonlinearity="modrelu", structure=Kronecker([2] * 3)),
        RNN(3, 8, structure=FullUnitary()),
    ],
    ids=repr,
)
def test_torch_compile_whole_graph(stack: RecurrentStack) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(stack, backend="aot_eager", fullgraph=True)
    x = torch.randn(4, 2, 3)
    gradients = []
    for module in (stack, compiled):
        stack.zero_grad()
        output, _ = module(x)
        output.square().sum().backward()
        gradients.append([p.grad.clone() for p in stack.parameters() if p.grad is not None])
    torch.testing.assert_close(stack(x)[0], compiled(x)[0])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_double_backward_and_vmap() -> None:
    stack = GRU(2, 6, structure=LowRank(2), dtype=torch.float64)
    x = numbers(3, 2, 2).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: stack(x)[0], (x,))
    kru = RNN(2, 4, nonlinearity="modrelu", structure=Kronecker([2, 2]), dtype=torch.float64)
    randomise_(kru, 0.1)
    assert torch.autograd.gradgradcheck(lambda x: kru(x)[0], (x,))
    many = numbers(5, 3, 2, 2)
    torch.testing.assert_close(torch.vmap(lambda x: stack(x)[0])(many), torch.stack([stack(x)[0] for x in many]))


@pytest.mark.skipif(shutil.which("c++") is None, reason="torch's inductor needs a C++ compiler")
def test_inductor_gradients_of_the_reference_gru() -> None:
    torch._dynamo.reset()
    both = nn.ModuleList([GRU(4, 6, reset="before", backend="reference"), GRU(4, 6, backend="reference")])
    x = torch.randn(1, 3, 4)

    def loss(x: Tensor) -> Tensor:  # of both at once: every graph keeps a compiler busy for seconds
        return torch.stack([gru(x)[0].square().sum() for gru in both]).sum()

    gradients = []
    for function in (loss, torch.compile(loss)):
        both.zero_grad()
        function(x).backward()
        gradients.append([p.grad.clone() for p in both.parameters() if p.grad is not None])
    assert len(gradients[0]) == len(list(both.parameters()))
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_ragged_batches_compile_and_export(backend: str) -> None:
    torch._dynamo.reset()
    stack = LSTM(3, 6, bidirectional=True, backend=backend).eval()
    x, lengths = torch.randn(5, 2, 3), torch.tensor([5, 2])
    expected = stack(x, lengths=lengths)[0]
    compiled = torch.compile(stack, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, lengths=lengths)[0], expected)
    exported = torch.export.export(stack, (x,), {"lengths": lengths})
    torch.testing.assert_close(exported.module()(x, lengths=lengths)[0], expected)


@few_pairs
def test_functional_call_sees_other_parameters(cell: str, structure: str) -> None:
    stack, other = build(cell, structure), build(cell, structure)
    x = numbers(3, 2, 3)
    swapped: dict[str, Tensor] = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    output = torch.func.functional_call(stack, swapped, (x,))[0]
    torch.testing.assert_close(output, other(x)[0])


@few_pairs
def test_parameters_may_lie_anywhere_in_memory(cell: str, structure: str) -> None:
    stack = build(cell, structure, learn_initial_state=True)
    x = numbers(3, 2, 3)
    expected = stack(x)[0]
    vector = nn.utils.parameters_to_vector(stack.parameters()).detach()
    shifted = torch.cat([vector.new_zeros(1), vector])[1:]  # an odd offset
    nn.utils.vector_to_parameters(shifted, stack.parameters())
    torch.testing.assert_close(stack(x)[0], expected)


def test_meta_device() -> None:
    output, h = LSTM(3, 4, 2, bidirectional=True, device="meta")(torch.empty(5, 2, 3, device="meta"))
    assert output.shape == (5, 2, 8)
    assert h[0].device.type == "meta"


def test_autocast_converts_the_initial_state_and_spares_the_penalty() -> None:
    stack = RNN(3, 4, structure=Kronecker([2, 2]))
    with torch.no_grad():
        stack.layer(0).recurrent.get_parameter("factor_0").mul_(1.01)
    expected = stack.penalty()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(stack.penalty(), expected)
        assert stack.recurrent_matrices()[0].dtype == torch.float32
        output, _ = stack(torch.randn(2, 2, 3), torch.zeros(1, 2, 4, dtype=torch.bfloat16))
    assert output.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:a layer in torch.*float16 runs in plain torch")
def test_from_torch_in_half_precision() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        stack = GRU.from_torch(nn.GRU(4, 6).to(dtype), structure=LowRank(2) + Diagonal())
        assert {p.dtype for p in stack.parameters()} == {dtype}
        assert torch.isfinite(stack(torch.randn(3, 2, 4, dtype=dtype))[0]).all()


def test_every_trainable_parameter_gets_a_gradient() -> None:
    for cell, structure in FEW_PAIRS:
        stack = build(cell, structure, num_layers=2, bidirectional=True, learn_initial_state=True)
        stack(numbers(3, 2, 3))[0].square().sum().backward()
        for name, p in stack.named_parameters():
            assert (p.grad is not None) == p.requires_grad, (cell, structure, name)


def _train_in_parallel(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.ModuleList(
        [RNN(2, 8, nonlinearity="modrelu", structure=s) for s in (Kronecker([2] * 3), UnitaryProduct())]
    )
    model.append(GRU(2, 8, structure=LowRank(2) + Diagonal()))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = model

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([layer(x)[0] for layer in self.layers], -1)

    net = nn.parallel.DistributedDataParallel(Net())
    x = torch.randn(4, 6, 2)  # the same on both; each takes its half
    net(x[:, 3 * rank : 3 * rank + 3]).square().mean().backward()
    if rank == 0:
        torch.save([p.grad for p in net.parameters()], f"{folder}/gradients.pt")
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)  # gloo's own threads sometimes abort an interpreter that ends in the ordinary way


def test_distributed_data_parallel_averages_gradients(tmp_path: Path) -> None:
    start_processes(_train_in_parallel, (str(tmp_path),), nprocs=2, start_method="spawn")
    together = torch.load(tmp_path / "gradients.pt")
    torch.manual_seed(0)
    layers: list[RecurrentStack] = [
        RNN(2, 8, nonlinearity="modrelu", structure=s) for s in (Kronecker([2] * 3), UnitaryProduct())
    ]
    layers.append(GRU(2, 8, structure=LowRank(2) + Diagonal()))
    x = torch.randn(4, 6, 2)
    torch.cat([layer(x)[0] for layer in layers], -1).square().mean().backward()
    alone = [p.grad for layer in layers for p in layer.parameters()]
    torch.testing.assert_close(together, alone)


def test_import_is_silent() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import slimrnn"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_repr_shows_structure_backend_and_count() -> None:
    shown = repr(GRU(1, 128, structure=LowRank(24) + Diagonal(), reset="before", batch_first=True))
    backend = resolve_backend("auto")
    runs_as = ", runs_as='compiled'" if backend == "native" else ""
    assert shown == (
        "GRU(1, 128, structure=LowRank(24) + Diagonal(), reset='before', batch_first=True, "
        f"backend={backend!r}{runs_as}, parameters=19,584)"
    )
