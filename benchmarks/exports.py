"""onnxruntime's time over ours, one thread both: whole sequences and single steps.

    python benchmarks/exports.py FOLDER        exports what FOLDER lacks, then measures

A ratio above 1 means that slimrnn is faster.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import slimrnn
from slimrnn import GRU, LSTM, RNN, SLSTM, BlockDiagonal, Diagonal, Kronecker, LowRank
from slimrnn.exporting.onnx_file import open_session

ROUNDS = 30
SHAPES = ((1, 100), (20, 100))  # batch, length
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "LSTM, n = 128, dense": (lambda: LSTM(32, 128), {}),
    "GRU, n = 128, dense": (lambda: GRU(32, 128), {}),
    "GRU, n = 128, LowRank(16) + Diagonal()": (lambda: GRU(32, 128, structure=LowRank(16) + Diagonal()), {}),
    "the same, merge=True": (lambda: GRU(32, 128, structure=LowRank(16) + Diagonal()), {"merge": True}),
    "LSTM, n = 512, BlockDiagonal(8)": (lambda: LSTM(32, 512, structure=BlockDiagonal(8)), {}),
    "RNN, modReLU, n = 512, Kronecker([2] * 9)": (
        lambda: RNN(32, 512, nonlinearity="modrelu", structure=Kronecker([2] * 9)),
        {},
    ),
    "SLSTM, n = 128, dense": (lambda: SLSTM(32, 128), {}),
}


def best(calls: list[Callable[[], object]]) -> list[float]:
    """Seconds of each, the best of rounds in turns."""
    found = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            found[k] = min(found[k], time.perf_counter() - start)
    return found


def measured(path: Path, inputs: list[Any], call: Callable[[], object]) -> str:
    leaves = [leaf for value in inputs for leaf in (value if isinstance(value, tuple) else (value,))]
    with open_session(path) as run:
        theirs, ours = best([lambda: run(leaves), call])
    return f"{theirs / ours:5.2f} ({1e3 * theirs:.3f} ms over {1e3 * ours:.3f} ms)"


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    for number, (name, (make, options)) in enumerate(CASES.items()):
        torch.manual_seed(0)
        model = make().eval()
        whole, step = folder / f"{number}.onnx", folder / f"{number}-step.onnx"
        if not whole.exists():
            slimrnn.export(model, (torch.randn(7, 3, 32), model.initial_state(3)), whole, quiet=True, **options)
        if not step.exists():
            slimrnn.export(model, torch.randn(3, 32), step, step=True, quiet=True, **options)
        parts = []
        with torch.no_grad(), model.fixed_weights():
            for batch, length in SHAPES:
                x, state = torch.randn(length, batch, 32), model.initial_state(batch)
                ratio = measured(whole, [x, state], lambda model=model, x=x, state=state: model(x, state))
                parts.append(f"B = {batch}, T = {length}: {ratio}")
            x_t, state = torch.randn(1, 32), model.initial_state(1)
            ratio = measured(step, [x_t, state], lambda model=model, x_t=x_t, state=state: model.step(x_t, state))
        print(f"{name}: {'; '.join(parts)}; one step: {ratio}; {whole.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/exports"))
