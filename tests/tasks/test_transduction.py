"""Reverse, sort-digits and dates."""

from __future__ import annotations

import datetime
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scoring import value

from slimrnn.sequence import PADDING, Decoder, EncoderDecoder
from slimrnn.tasks import TASKS, DatesTask, ReverseTask, SortDigitsTask, config_from_dict
from slimrnn.tasks.dates import FORMATS, SOURCE_ALPHABET, TARGET_ALPHABET, decode, encode
from slimrnn.tasks.transduction import TransductionTask
from slimrnn.training import Batch, Config, ModelConfig, OptimConfig, resume, train
from slimrnn.training.checks import build_model, check
from slimrnn.training.nets import WEIGHTS
from slimrnn.training.run_files import read_tensors

CASES: dict[str, TransductionTask] = {
    "reverse": ReverseTask(6),
    "copy": ReverseTask(5, 2, 4, copy=True),
    "sort-digits": SortDigitsTask(),
    "dates": DatesTask(),
}
every_task = pytest.mark.parametrize("task", CASES.values(), ids=CASES)
SPLITS = ("train", "valid", "test")


def rows(batch: Batch) -> list[tuple[list[int], list[int]]]:
    """Sources and targets without padding."""
    assert batch.lengths is not None
    sources = [row[:length] for row, length in zip(batch.inputs.T.tolist(), batch.lengths.tolist(), strict=True)]
    return list(zip(sources, [[s for s in row if s != PADDING] for row in batch.targets.T.tolist()], strict=True))


def test_every_transduction_has_a_case() -> None:
    found = {name for name, task in TASKS.items() if issubclass(task, TransductionTask)}
    assert {task.name for task in CASES.values()} == found


@every_task
@given(indices=st.lists(st.integers(0, 2**40), min_size=1, max_size=6), seed=st.integers(0, 3))
def test_a_pair_is_a_function_of_its_number(task: TransductionTask, indices: list[int], seed: int) -> None:
    samples = pickle.loads(pickle.dumps(task.samples("train", seed)))
    together = rows(samples.fetch(np.array(indices)))
    assert together == [rows(samples.fetch(np.array([index])))[0] for index in indices]


@every_task
def test_splits_share_no_source_and_seeds_differ(task: TransductionTask) -> None:
    seen: dict[str, set[tuple[int, ...]]] = {}
    for split in SPLITS:
        batch = task.samples(split, 0).fetch(np.arange(2000))
        seen[split] = {tuple(source) for source, _ in rows(batch)}
        assert rows(batch) != rows(task.samples(split, 1).fetch(np.arange(2000)))
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["valid"]
    assert not seen["valid"] & seen["test"]


@pytest.mark.parametrize("split", SPLITS)
def test_targets_are_what_the_task_says(split: str) -> None:
    indices = np.arange(300)
    for source, target in rows(ReverseTask().samples(split, 0).fetch(indices)):
        assert target == source[::-1]
    for source, target in rows(ReverseTask(copy=True).samples(split, 0).fetch(indices)):
        assert target == source
    for source, target in rows(SortDigitsTask().samples(split, 0).fetch(indices)):
        assert target == sorted(source)


def test_lengths_and_symbols_are_spread_over_their_ranges() -> None:
    found = rows(ReverseTask(7, 2, 5).samples("train", 0).fetch(np.arange(3000)))
    lengths = np.bincount([len(source) for source, _ in found], minlength=8)
    assert lengths[:2].tolist() == [0, 0]
    assert lengths[2:].min() > 400
    symbols = np.bincount([symbol for source, _ in found for symbol in source])
    assert len(symbols) == 5
    assert symbols.min() > 0.9 * symbols.mean()


def test_no_multiset_of_symbols_is_in_two_splits() -> None:
    task = SortDigitsTask(4, 3, 5)
    sorted_ones = [{tuple(target) for _, target in rows(task.samples(s, 0).fetch(np.arange(3000)))} for s in SPLITS]
    assert all(len(found) > 10 for found in sorted_ones)
    assert not sorted_ones[0] & sorted_ones[1] | sorted_ones[0] & sorted_ones[2] | sorted_ones[1] & sorted_ones[2]


def test_dates_are_read_in_every_form_and_written_as_iso() -> None:
    task = DatesTask()
    texts = [
        (decode(a, SOURCE_ALPHABET), decode(b, TARGET_ALPHABET))
        for a, b in rows(task.samples("train", 0).fetch(np.arange(500)))
    ]
    for source, target in texts:
        date = datetime.date.fromisoformat(target)
        assert 1900 <= date.year <= 2099
        assert source in [form(date) for form in FORMATS]
    day = datetime.date(1987, 3, 3)
    assert [form(day) for form in FORMATS] == [
        "3 March 1987",
        "3rd of March, 1987",
        "the 3rd of March 1987",
        "March 3, 1987",
        "March 3rd, 1987",
        "Mar 3 1987",
        "03-MAR-1987",
        "Tuesday, 3 March 1987",
        "Tue Mar 03 1987",
        "3.3.1987",
        "03/03/1987",
        "1987/3/3",
    ]
    ordinals = [
        FORMATS[1](datetime.date(2000, 1, day)).split()[0] for day in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 30, 31)
    ]
    assert ordinals == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "30th", "31st"]


def test_characters_are_known_or_refused() -> None:
    assert decode(encode("3rd of May, 1987", SOURCE_ALPHABET), SOURCE_ALPHABET) == "3rd of May, 1987"
    with pytest.raises(ValueError, match=r"expected characters of '.*', got 'ä'"):
        encode("März", SOURCE_ALPHABET)


def test_no_form_means_two_dates() -> None:
    meant: dict[str, datetime.date] = {}
    for day in range(0, 73_049, 7):
        date = datetime.date(1900, 1, 1) + datetime.timedelta(day)
        for form in FORMATS:
            assert meant.setdefault(form(date), date) == date


def test_what_was_written_is_scored() -> None:
    task = ReverseTask()
    targets = torch.tensor([[1, 2, 3], [4, 5, PADDING], [6, PADDING, PADDING]])
    batch = Batch(torch.zeros(3, 3, dtype=torch.long), targets, lengths=torch.tensor([3, 2, 1]))
    right = task.scores(targets, batch)
    assert {name: value(score) for name, score in right.items()} == {"exact_match": 1.0, "token_accuracy": 1.0}
    shorter = task.scores(targets[:2], batch)  # one symbol is missing
    assert value(shorter["exact_match"]) == pytest.approx(2 / 3)
    assert value(shorter["token_accuracy"]) == pytest.approx(5 / 6)
    longer = torch.cat([targets, torch.tensor([[7, PADDING, PADDING]])])  # one too many
    assert value(task.scores(longer, batch)["exact_match"]) == pytest.approx(2 / 3)
    assert value(task.scores(longer, batch)["token_accuracy"]) == 1.0


def test_updates_are_teacher_forced_and_evaluations_decode() -> None:
    task = ReverseTask(4, 2, 3)
    model = task.model(ModelConfig("gru", 16))
    assert isinstance(model, EncoderDecoder)
    batch = task.samples("train", 0).fetch(np.arange(20))
    with torch.no_grad():
        outcome, state = task.run(model, batch)
    assert state is None
    assert set(outcome.scores) == {"loss"}
    lengths = (batch.targets != PADDING).sum(0)
    expected = model.loss(batch.targets, batch.inputs, lengths, batch.lengths)
    assert value(outcome.scores["loss"]) == pytest.approx(float(expected.detach()))
    model.eval()
    with torch.no_grad():
        scores = task.run(model, batch)[0].scores
    assert list(scores) == ["loss", "exact_match", "token_accuracy"]
    assert value(scores["loss"]) == pytest.approx(float(expected.detach()))


def test_forcing_feeds_the_net_its_own_symbols_in_training_only() -> None:
    forced, free = ReverseTask(4, 3, 3), ReverseTask(4, 3, 3, forcing=0.0)
    model, batch = forced.model(ModelConfig("gru", 16)), forced.samples("train", 0).fetch(np.arange(50))
    with torch.no_grad():
        assert value(forced.run(model, batch)[0].scores["loss"]) != value(free.run(model, batch)[0].scores["loss"])
        model.eval()
        assert value(forced.run(model, batch)[0].scores["loss"]) == value(free.run(model, batch)[0].scores["loss"])


def test_a_small_net_learns_to_sort() -> None:
    task = SortDigitsTask(3, 2, 4)
    model = build_model(Config(task, ModelConfig("gru", 48)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for update in range(150):
        batch = task.samples("train", 0).fetch(np.arange(32 * update, 32 * update + 32))
        score = task.run(model, batch)[0].scores["loss"]
        optimizer.zero_grad()
        (score.total / score.weight).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = task.run(model, task.samples("test", 0).fetch(np.arange(200)))[0].scores
    assert value(scores["exact_match"]) > 0.9


def test_a_run_goes_on_to_the_same_bits_and_decodes_with_the_weights_of_its_updates(tmp_path: Path) -> None:
    task = SortDigitsTask(3, 2, 3, forcing=0.5)
    config = Config(
        task,
        ModelConfig("gru", 24),
        OptimConfig(lr=0.02),
        updates=40,
        batch_size=16,
        valid_size=50,
        test_size=50,
        eval_every=20,
        checkpoint_every=10,
        tensorboard=False,
        out=tmp_path / "whole",
    )
    whole = train(config, quiet=True)
    part = train(replace(config, updates=20, out=tmp_path / "part"), quiet=True)
    gone_on = resume(part.directory, replace(config, out=part.directory), quiet=True)
    assert gone_on.final == whole.final
    model = build_model(config)
    weights, _ = read_tensors(whole.directory / "final.safetensors", WEIGHTS)
    model.load_state_dict(weights)
    model.eval()
    with torch.no_grad():
        scores = task.run(model, task.samples("test", 0).fetch(np.arange(50)))[0].scores
    for name, score in scores.items():
        assert value(score) == pytest.approx(whole.final["test"][name], rel=1e-5)


@every_task
def test_the_default_settings_are_complete(task: TransductionTask) -> None:
    config = task.default_config()
    assert config.task is task
    check(config)
    assert isinstance(build_model(config), EncoderDecoder)
    assert config_from_dict({"task": {"name": task.name}}) == type(task)().default_config()
    changed = config_from_dict({"task": {"name": task.name}, "model": {"hidden": 7}, "updates": 3})
    expected = type(task)().default_config()
    assert changed == replace(expected, model=replace(expected.model, hidden=7), updates=3)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_any_net_may_be_used(cell: str, bidirectional: bool) -> None:
    task = DatesTask()
    model = task.model(ModelConfig(cell, 8, layers=2, bidirectional=bidirectional))
    batch = task.samples("train", 0).fetch(np.arange(3))
    task.run(model, batch)[0].scores["loss"].total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReverseTask(0), "expected length to be at least 1, got 0"),
        (lambda: ReverseTask(2), "expected shortest of at most length 2, got 3"),
        (lambda: SortDigitsTask(symbols=2), "expected symbols to be at least 3, .*, got 2"),
        (lambda: DatesTask(forcing=2.0), r"expected forcing in \[0, 1\], got 2.0"),
        (lambda: DatesTask(context="inputs"), "expected context to be one of 'state', 'input', 'both', got 'inputs'"),  # type: ignore[arg-type]
        (lambda: DatesTask().samples("tset", 0), "expected split to be one of 'train', 'valid', 'test', got 'tset'"),
        (
            lambda: check(Config(DatesTask(), ModelConfig(learn_initial_state=True))),
            "expected learn_initial_state only with context input",
        ),
        (
            lambda: check(Config(ReverseTask(curriculum="linear"), ModelConfig(recurrent_dropout=0.1))),
            "expected no recurrent_dropout with scheduled sampling",
        ),
    ],
)
def test_bad_options_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("curriculum", "values"),
    [
        ("constant", [0.8, 0.8, 0.8]),
        ("linear", [0.8, 0.4, 0.0]),
        ("exponential", [0.8, 0.8 * math.exp(-0.5), 0.8 * math.exp(-1)]),
        ("inverse-sigmoid", [None, None, 0.4]),
    ],
)
def test_curricula_lower_the_forcing(curriculum: Any, values: list[float | None]) -> None:
    task = ReverseTask(4, forcing=0.8, curriculum=curriculum, forcing_updates=100)
    found = [task.forcing * task.schedule(update) for update in (0, 50, 100)]
    assert found == sorted(found, reverse=True)
    for probability, expected in zip(found, values, strict=True):
        assert expected is None or probability == pytest.approx(expected)


def test_the_engine_tells_the_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, asked = ReverseTask(4, curriculum="linear", forcing_updates=4), []
    losses = Decoder.losses

    def spy(self: Decoder, *args: Any, forcing: float = 1.0, **options: Any) -> Any:
        asked.append((self.training, forcing))
        return losses(self, *args, forcing=forcing, **options)

    monkeypatch.setattr(Decoder, "losses", spy)
    config = Config(
        task, ModelConfig("gru", 4), updates=5, batch_size=2, valid_size=2, test_size=2, out=tmp_path / "run"
    )
    train(config, quiet=True)
    assert [forcing for training, forcing in asked if training] == [1, 0.75, 0.5, 0.25, 0]
    assert {forcing for training, forcing in asked if not training} == {1.0}
