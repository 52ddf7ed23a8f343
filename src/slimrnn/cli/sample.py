"""`slimrnn sample`: text from a net of characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass
from slimrnn.data.text import END
from slimrnn.errors import UsageError
from slimrnn.tasks import run_config
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.training import random

if TYPE_CHECKING:
    from slimrnn.training.symbol_model import SymbolModel


@dataclass(frozen=True)
class Options:
    """Let the best net of a run on ptb-chars write text, character by character."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    prompt: str = ""
    """what the net reads first, and goes on from"""
    length: int = 200
    """characters to write"""
    temperature: float = 1.0
    """below 1: more often what is likely; 0: always the likeliest"""
    seed: int = 0
    """of what is drawn"""
    task: TaskClass = None
    """where the task's class is now, module:Class, if not where run.json says"""


def run(arguments: Sequence[str]) -> None:
    """Print the prompt and what follows, as it comes."""
    options = parse(Options(), arguments, "slimrnn sample")
    if options.length < 1:
        raise UsageError(f"expected --length of at least 1, got {options.length}")
    if not 0 <= options.temperature < float("inf"):
        raise UsageError(f"expected --temperature of at least 0, got {options.temperature}")
    task, model = load(options.run, options.task)
    for character in options.prompt:
        if character not in task.symbols:
            raise UsageError(f"expected characters that the net knows ({task.symbols!r}), got {character!r}")
    print(options.prompt, end="", flush=True)
    for character in write(model, task, options.prompt, options.length, options.temperature, options.seed):
        print(character, end="", flush=True)
    print()


def load(directory: Path, task: str | None = None) -> tuple[PTBCharsTask, SymbolModel]:
    """The task of a run and its best net."""
    from slimrnn.training.checks import build_model
    from slimrnn.training.nets import WEIGHTS, load_weights
    from slimrnn.training.record import Run
    from slimrnn.training.run_files import read_tensors
    from slimrnn.training.symbol_model import SymbolModel

    run = Run(directory)
    config = run_config(run, task)
    if not isinstance(config.task, PTBCharsTask):
        raise UsageError(f"expected a run on {PTBCharsTask.name}, got {directory}, which is one on {config.task.name}")
    weights, _ = read_tensors(run.best_weights, WEIGHTS)
    known = weights["readout.bias"].numel() if "readout.bias" in weights else None
    if known not in (None, config.task.output_size):
        found = f"{config.task.file} with {config.task.output_size}"
        raise UsageError(f"expected the text that the net was trained on, with {known} symbols, got {found}")
    model = build_model(config)
    assert isinstance(model, SymbolModel)  # what the task makes
    load_weights(model, weights, run.best_weights)
    return config.task, model.eval()


@torch.no_grad()
def write(
    model: SymbolModel, task: PTBCharsTask, prompt: str, length: int, temperature: float, seed: int = 0
) -> Iterator[str]:
    """So many characters after the prompt. Where training began every sentence anew, so does this."""
    symbols, forgets = task.symbols, task.streams is None
    uniform = random.uniform(random.key(seed, "sample"), np.arange(length), 1)[:, 0]
    eye = model.one_hot(torch.arange(len(symbols)))
    state: Any = model.rnn.initial_state()
    last = END
    for place in range(-len(prompt), length + 1):
        if place > 0:
            yield last
        if place == length:
            return
        if last == END and forgets:
            state = model.rnn.initial_state()
        output, state = model.rnn.step(eye[symbols.index(last)], state)
        scores = model.readout(output[None])[0]  # a sequence of one step
        last = prompt[place] if place < 0 else symbols[_draw(scores, temperature, float(uniform[place]))]


def _draw(scores: torch.Tensor, temperature: float, uniform: float) -> int:
    """A class with probability in proportion to exp(score / temperature)."""
    if temperature == 0:
        return int(scores.argmax())
    values = scores.double().numpy()
    weights = np.exp((values - values.max()) / temperature).cumsum()
    return int(np.searchsorted(weights[:-1], uniform * weights[-1], side="right"))
