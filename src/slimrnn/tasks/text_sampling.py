"""Text from a character-level net."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from slimrnn.data.text import END
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.training import random


@torch.no_grad()
def sample_text(
    model: nn.Module, task: PTBCharsTask, prompt: str, length: int, temperature: float, seed: int = 0
) -> Iterator[str]:
    """`length` characters that continue the prompt. A net trained sentence by sentence starts each one anew."""
    net: Any = model  # a SymbolModel
    symbols, resets = task.symbols, task.streams is None
    uniform = random.uniform(random.key(seed, "sample"), np.arange(length), 1)[:, 0]
    eye = net.one_hot(torch.arange(len(symbols)))
    state: Any = net.rnn.initial_state()
    last = END
    for place in range(-len(prompt), length + 1):
        if place > 0:
            yield last
        if place == length:
            return
        if last == END and resets:
            state = net.rnn.initial_state()
        output, state = net.rnn.step(eye[symbols.index(last)], state)
        scores = net.output(net.readout(output[None]))[0]  # a sequence of one step
        last = prompt[place] if place < 0 else symbols[_draw(scores, temperature, float(uniform[place]))]


def _draw(scores: torch.Tensor, temperature: float, uniform: float) -> int:
    """Draw a class with probability proportional to exp(score / temperature)."""
    if temperature == 0:
        return int(scores.argmax())
    values = scores.double().numpy()
    weights = np.exp((values - values.max()) / temperature).cumsum()
    return int(np.searchsorted(weights[:-1], uniform * weights[-1], side="right"))
