"""`slimrnn sample`: text from a character-level net."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro import MISSING
from tyro.conf import Positional

from slimrnn.cli.parsing import parse
from slimrnn.cli.settings import TaskClass, trained_net
from slimrnn.errors import UsageError
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.tasks.text_sampling import sample_text


@dataclass(frozen=True)
class Options:
    """Sample text, character by character, from the best net of a run on ptb-chars."""

    run: Positional[Path] = MISSING
    """directory of the run"""
    prompt: str = ""
    """text to continue"""
    length: int = 200
    """number of characters"""
    temperature: float = 1.0
    """sampling temperature; 0: greedy"""
    seed: int = 0
    """random seed"""
    task: TaskClass = None
    """module:Class of the task, if it has moved since the run began"""


def run(arguments: Sequence[str]) -> None:
    """Print the prompt and what follows, as it comes."""
    options = parse(Options(), arguments, "slimrnn sample")
    if options.length < 1:
        raise UsageError(f"expected --length of at least 1, got {options.length}")
    if not 0 <= options.temperature < float("inf"):
        raise UsageError(f"expected --temperature of at least 0, got {options.temperature}")
    task, model = trained_net(options.run, PTBCharsTask, options.task)
    for character in options.prompt:
        if character not in task.symbols:
            raise UsageError(f"expected characters that the net knows ({task.symbols!r}), got {character!r}")
    print(options.prompt, end="", flush=True)
    for character in sample_text(model, task, options.prompt, options.length, options.temperature, options.seed):
        print(character, end="", flush=True)
    print()
