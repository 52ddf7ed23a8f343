"""Nets exported to C, run on emulated Cortex-M boards for 500 steps and compared with `rnn.step`.

    python release/mcu_nets.py [--steps STEPS]

An int8 net must have the bits of torch, a float net those of the same C on this machine. Flash is code and weights, RAM
the state and the stack of a step, as it was measured; instructions are counted by qemu and are no times.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "microcontroller"))

from boards import BOARDS, run_on

import slimrnn
from slimrnn import GRU, LSTM, RNN, Diagonal, FastGRNN, Kronecker, LowRank, ReadOut
from slimrnn.exporting.c.compiled import open_compiled
from slimrnn.exporting.stages import Unrolled
from slimrnn.layers import RecurrentStack

STEPS = 500


def nets() -> dict[str, nn.Module]:
    gru, fast = GRU(13, 64, structure=LowRank(8) + Diagonal()), FastGRNN(28, 48, structure=LowRank(12))
    kru = RNN(1, 64, nonlinearity="modrelu", structure=Kronecker([2] * 6))
    found: dict[str, nn.Module] = {
        "GRU 64, LowRank(8) + Diagonal": nn.Sequential(gru, ReadOut(gru, 12)),
        "FastGRNN 48, LowRank(12)": nn.Sequential(fast, ReadOut(fast, 10)),
        "LSTM 32, dense": LSTM(8, 32),
    }
    for name, model in list(found.items()):
        found[f"{name}, int8"] = slimrnn.quantize(model)
    return found | {"KRU 64, Kronecker([2] * 6)": kru}


def inputs_of(model: nn.Module, steps: int) -> Tensor:
    stack = next(module for module in model.modules() if isinstance(module, RecurrentStack))
    return torch.randn(steps, 1, stack.input_size)


def check(name: str, model: nn.Module, steps: int, folder: Path) -> None:
    """Print a line for each board; SystemExit where an output differs."""
    x = inputs_of(model, steps)
    net = folder / "net.c"
    slimrnn.export(model, x[:9], net, quiet=True)
    model.eval()
    with torch.no_grad():
        expected = Unrolled(model)(x)
    with open_compiled(net) as run:
        (here,) = run([x])
    for board in BOARDS.values():
        answer = run_on(board, net, x.transpose(0, 1), folder)
        found = answer.outputs.transpose(0, 1)
        off = float((found - expected).abs().max() / expected.abs().max())
        if not torch.equal(found, here) or not off <= (0 if "int8" in name else 1e-5):
            sys.exit(f"{name} on {board.name}: expected the outputs of step, got a difference of {off:.1e}")
        sizes = f"flash {answer.flash:,}, state {answer.state:,}, stack {answer.stack:,} bytes"
        print(
            f"{name} on {board.name}: off by {off:.1e} in {steps} steps; {sizes}; {answer.instructions:,} instructions"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name, model in nets().items():
        with tempfile.TemporaryDirectory() as folder:
            check(name, model, given.steps, Path(folder))


if __name__ == "__main__":
    main()
