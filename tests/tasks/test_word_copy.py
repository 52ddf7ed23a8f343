"""The word copy task against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scoring import value

from slimrnn.tasks import WordCopyTask

TASKS = [WordCopyTask(), WordCopyTask(repeats=3, letters=2, bits=5), WordCopyTask(repeats=1, letters=1, bits=1)]


@pytest.mark.parametrize("task", TASKS)
def test_the_word_is_read_once_and_written_again_and_again(task: WordCopyTask) -> None:
    batch = task.samples("train", 0).fetch(np.arange(7))
    steps = task.letters * (task.repeats + 1)
    assert batch.inputs.shape == batch.targets.shape == (steps, 7, task.bits)
    for b in range(7):
        word = batch.inputs[: task.letters, b].tolist()
        assert {bit for letter in word for bit in letter} <= {0.0, 1.0}
        assert batch.targets[:, b].tolist() == word * (task.repeats + 1)
        assert not batch.inputs[task.letters :, b].any()


def test_bits_are_fair() -> None:
    word = WordCopyTask(repeats=1).samples("train", 0).fetch(np.arange(1000)).inputs[:6]
    assert (word.mean((1,)) - 0.5).abs().max() < 5 * 0.5 / math.sqrt(1000)


@pytest.mark.parametrize("task", TASKS)
def test_memoryless_is_the_loss_of_echoing_the_word_and_guessing_the_rest(task: WordCopyTask) -> None:
    batch = task.samples("valid", 0).fetch(np.arange(20))
    output = torch.zeros_like(batch.targets)
    output[: task.letters] = (2 * batch.inputs[: task.letters] - 1) * 100
    assert value(task.scores(output, batch)["loss"]) == pytest.approx(task.baselines["memoryless"], rel=1e-6)


def test_scores_are_those_of_bits_and_of_repeated_words() -> None:
    task = WordCopyTask(repeats=3, letters=2, bits=2)
    batch = task.samples("test", 0).fetch(np.arange(50))
    output = (2 * batch.targets - 1) * 3.0 + 2.5 * torch.randn_like(batch.targets)
    chances = output.double().sigmoid()
    losses, bits, words = [], [], []
    for b in range(50):
        for t in range(8):
            for k in range(2):
                wanted = batch.targets[t, b, k] > 0
                losses.append(-math.log(chances[t, b, k] if wanted else 1 - chances[t, b, k]))
                if t >= 2:
                    bits.append(bool((chances[t, b, k] > 0.5) == wanted))
        words += [all(bits[-12 + 4 * r :][:4]) for r in range(3)]
    scores = task.scores(output, batch)
    assert value(scores["loss"]) == pytest.approx(np.mean(losses), rel=1e-5)
    assert value(scores["bit_accuracy"]) == pytest.approx(np.mean(bits))
    assert value(scores["word_accuracy"]) == pytest.approx(np.mean(words))
    assert 0 < np.mean(words) < 1


def test_pieces_of_whole_words_add_up() -> None:
    task = WordCopyTask(repeats=5, letters=3, bits=2)
    batch = task.samples("test", 0).fetch(np.arange(10))
    output = (2 * batch.targets - 1) * 2.0 + 2 * torch.randn_like(batch.targets)
    whole = task.scores(output, batch)
    parts = [task.scores(output[6 * i :][:6], piece) for i, piece in enumerate(batch.segments(6))]
    assert len(parts) == 3
    for name, score in whole.items():
        assert sum(float(part[name].total) for part in parts) == pytest.approx(float(score.total), rel=1e-5)
        assert sum(float(part[name].weight) for part in parts) == score.weight
