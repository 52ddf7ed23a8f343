"""The low-rank authors' start gives the losses that they published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from slimrnn.errors import ConfigError
from slimrnn.papers import find_row
from slimrnn.tasks import CopyTask
from slimrnn.tasks.copy_authors import Order, drawn
from slimrnn.training import Config
from slimrnn.training.batches import Batches, on_device
from slimrnn.training.checks import check
from slimrnn.training.launch import ALONE
from slimrnn.training.learner import Learner, net_to_train

DANIHELKA = (2.259144, 2.223180, 2.189038, 2.159701, 2.129247, 2.098393)
FIVE_HUNDRED = (2.202842, 2.144984, 2.090576)


def first_losses(config: Config, updates: int) -> list[float]:
    learner, losses = Learner(config, net_to_train(config), print), []
    for _, batch in zip(range(updates), Batches.of_run(config, ALONE), strict=False):
        loss = learner.loss(on_device(batch, config, torch.device("cpu")))
        learner.optimizer.zero_grad()
        loss.backward()
        learner.clip_or_recover_()
        learner.optimizer.step()
        losses.append(loss.item())
    return losses


def test_losses_of_danihelkas_variant_have_the_published_digits() -> None:
    config = find_row("copy-danihelka-lrd-gru-authors").config
    assert [round(loss, 6) for loss in first_losses(config, 6)] == list(DANIHELKA)


def test_losses_of_the_long_lag_have_the_published_digits() -> None:
    """The first is 2.2028415, which the authors' float32 rounds up."""
    config = find_row("copy-500-lrd-gru-authors").config
    assert first_losses(config, 3) == pytest.approx(FIVE_HUNDRED, abs=1.1e-6)


def test_the_test_set_follows_the_training_set_and_validation_is_ours() -> None:
    task = CopyTask(100, variable_length=True, start="authors")
    symbols, counts, _ = drawn(100, True, False)
    read = task.samples("test", 3).fetch(np.arange(2)).inputs.argmax(-1).T
    for row, expected, count in zip(read.tolist(), symbols[100_000:], counts[100_000:], strict=False):
        assert (row[:count], row[count + 99]) == (expected[:count].tolist(), 9)
    ours = replace(task, start="seed").samples("valid", 3).fetch(np.arange(4)).inputs
    assert torch.equal(task.samples("valid", 3).fetch(np.arange(4)).inputs, ours)


def test_the_order_is_a_function_of_the_place() -> None:
    """So a resumed run sees the same batches."""
    order, places = Order(), np.arange(40, 60)
    later = order(places)
    assert (Order()(np.arange(60))[40:] == later).all()
    order(np.arange(20))
    assert (order(places) == later).all()


def test_settings_without_such_a_start_are_refused() -> None:
    config = find_row("copy-danihelka-lrd-gru-authors").config
    with pytest.raises(ConfigError, match="expected one layer of low-rank\\+diagonal gru"):
        check(replace(config, model=replace(config.model, structure="low-rank")))
    with pytest.raises(ConfigError, match="expected 8 symbols, width 10, batches of 20 and no train_size"):
        check(replace(config, train_size=100_000))
    with pytest.raises(ValueError, match="expected variable_length or variable_lag with start authors, got both"):
        CopyTask(5, variable_length=True, variable_lag=True, start="authors")
