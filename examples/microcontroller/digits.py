"""Handwritten digits on a microcontroller: a net that reads an image row by row, in int8, as C.

    python examples/microcontroller/digits.py train     # MNIST, a few minutes
    python examples/microcontroller/digits.py export    # int8, digits.c and digits.h, and a proof
    python examples/microcontroller/digits.py run       # on emulated Cortex-M boards, with real test images

The first needs MNIST: `slimrnn data get mnist`, or SLIMRNN_DATA. The last needs gcc-arm-none-eabi and qemu-system-arm.
Everything is kept in --out (out/digits).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from boards import BOARDS, run_on
from torch import Tensor, nn
from torch.nn import functional

import slimrnn
from slimrnn import FastGRNN, LowRank
from slimrnn.data import mnist
from slimrnn.errors import DataError

ROWS, DIGITS = 28, 10
UNITS, RANK = 48, 12
BATCH, RATE = 100, 3e-3


class DigitReader(nn.Module):
    """A recurrent layer that reads rows of pixels, and scores of the digits after each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = FastGRNN(ROWS, UNITS, structure=LowRank(RANK))
        self.scores = nn.Linear(UNITS, DIGITS)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, 28, 28) -> scores (B, 10)"""
        output, _ = self.rnn(images.transpose(0, 1))
        scores: Tensor = self.scores(output[-1])
        return scores

    def stages(self) -> list[nn.Module]:
        """What a step passes through: the exporter asks for it."""
        return [self.rnn, self.scores]

    def step(self, row: Tensor, state: Any) -> tuple[Tensor, Any]:
        """What the exported C is compared with."""
        output, state = self.rnn.step(row, state)
        return self.scores(output), state

    def initial_state(self, batch: int) -> Any:
        return self.rnn.initial_state(batch)


def digits(split: str) -> tuple[Tensor, Tensor]:
    """Images (N, 28, 28) from 0 to 1, and what they show."""
    images, labels = mnist.load_mnist_split(split)
    return torch.from_numpy(images.astype(np.float32) / 255), torch.from_numpy(labels.astype(np.int64))


@torch.no_grad()
def accuracy(model: Callable[[Tensor], Tensor], images: Tensor, labels: Tensor) -> float:
    found = torch.cat([model(part).argmax(-1) for part in images.split(1000)])
    return float((found == labels).float().mean())


def train(out: Path, epochs: int) -> None:
    """A plain loop in torch."""
    torch.manual_seed(0)
    images, labels = digits("train")
    model = DigitReader()
    updates = epochs * (len(images) // BATCH)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, max(updates, 2))
    start = time.monotonic()
    for epoch in range(epochs):
        for chosen in torch.randperm(len(images)).split(BATCH)[: len(images) // BATCH]:
            loss = functional.cross_entropy(model(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        valid = accuracy(model.eval(), *digits("valid"))
        model.train()
        print(f"epoch {epoch + 1}: accuracy {valid:.2%} on validation, {time.monotonic() - start:.0f} s", flush=True)
    count = sum(p.numel() for p in model.parameters())
    slimrnn.save(model, out / "model", weights_only=True)
    print(f"{count:,} parameters, {4 * count:,} bytes in float32: {out / 'model'}")


def trained(out: Path) -> DigitReader:
    model = DigitReader()
    slimrnn.load(out / "model", into=model)
    return model.eval()


def export(out: Path) -> None:
    """In float32 and in int8, each with a proof on real images."""
    images, labels = digits("test")
    real = images[:3].transpose(0, 1)  # (T, B, I)
    for name, model in (("digits", slimrnn.quantize(trained(out))), ("digits_float", trained(out))):
        proof = slimrnn.export(model, real, out / f"{name}.c", quiet=True)
        weights = f"{proof.measured['bytes of weights']:,.0f} bytes of weights"
        print(f"{name}.c: {accuracy(model, images, labels):.2%} on the test images, {weights}, largest difference of")
        print(f"  the compiled file over {max(case.inputs for case in proof.cases)}: {proof.largest:.1e}")


def run(out: Path, count: int, boards: Sequence[str]) -> None:
    """The same answers as in torch, from an emulated microcontroller."""
    images, labels = digits("test")
    images, labels = images[:count], labels[:count]
    for name, model in (("digits", slimrnn.quantize(trained(out))), ("digits_float", trained(out))):
        with torch.no_grad():
            expected = model(images).argmax(-1)
        for board in boards:
            with tempfile.TemporaryDirectory() as folder:
                answer = run_on(BOARDS[board], out / f"{name}.c", images, Path(folder))
            found = answer.outputs[:, -1].argmax(-1)
            same, right = int((found == expected).sum()), int((found == labels).sum())
            print(
                f"{name}.c on {board}: {same} of {count} answers as in torch, {right} right; flash {answer.flash:,}, "
                f"RAM {answer.state + answer.stack:,} bytes, {answer.instructions:,} instructions for a row",
                flush=True,
            )
            if same != count:
                sys.exit("expected the same answers, got others")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["train", "export", "run"])
    parser.add_argument("--out", type=Path, default=Path("out/digits"))
    parser.add_argument("--epochs", type=int, default=10, help="of training")
    parser.add_argument("--images", type=int, default=50, help="to run on each board")
    parser.add_argument("--boards", nargs="+", choices=BOARDS, default=list(BOARDS))
    given = parser.parse_args(arguments)
    try:
        if given.command == "train":
            train(given.out, given.epochs)
        elif given.command == "export":
            export(given.out)
        else:
            run(given.out, given.images, given.boards)
    except (DataError, RuntimeError) as error:  # no data, or no qemu: both say what to install
        sys.exit(str(error))


if __name__ == "__main__":
    main()
