"""Parts share nothing, and have each label alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from own_cases import some_sequences
from slimrnn.errors import DataError
from slimrnn.tasks.own import ClassifyTask, RegressTask, TagTask
from slimrnn.tasks.own.splits import cut_in_time, held_out


def test_parts_share_no_sequence_and_have_all() -> None:
    parts = ClassifyTask.of(some_sequences(30)).parts
    together = np.concatenate([*parts.values()])
    assert sorted(together.tolist()) == list(range(30))
    assert {name: len(which) for name, which in parts.items()} == {"train": 19, "valid": 5, "test": 6}


def test_each_label_is_shared_out_alike() -> None:
    labels = np.array(["a"] * 80 + ["b"] * 20)
    chosen = held_out(np.arange(100), labels, 0.2, 0, "test")
    assert (labels[chosen] == "a").sum() == 16
    assert (labels[chosen] == "b").sum() == 4


def test_every_label_keeps_one_to_train_on() -> None:
    labels = np.array(["a"] * 9 + ["b"])
    for seed in range(20):
        assert 9 not in held_out(np.arange(10), labels, 0.5, seed, "test")


def test_parts_depend_on_their_own_seed_only() -> None:
    task = ClassifyTask.of(some_sequences())
    assert (task.parts["test"] == ClassifyTask.of(some_sequences()).parts["test"]).all()
    other = task.changed(split_seed=1).parts["test"]
    assert other.tolist() != task.parts["test"].tolist()


def test_numbers_are_shared_out_by_rank() -> None:
    task = RegressTask.of(some_sequences(40, "regress", gaps=False))
    numbers = np.asarray(task.sequences.labels)
    above = [(numbers[which] > np.median(numbers)).mean() for which in task.parts.values()]
    assert max(above) - min(above) < 0.3


def test_a_column_says_which_part() -> None:
    sequences = some_sequences(9)
    parts = ("train",) * 5 + ("valid",) * 2 + ("test",) * 2
    task = ClassifyTask.of(replace(sequences, parts=parts))
    assert {name: which.tolist() for name, which in task.parts.items()} == {
        "train": [0, 1, 2, 3, 4],
        "valid": [5, 6],
        "test": [7, 8],
    }


def test_a_part_that_the_column_leaves_out_is_taken_from_training() -> None:
    parts = ("train",) * 15 + ("test",) * 9
    task = ClassifyTask.of(replace(some_sequences(), parts=parts))
    assert task.parts["test"].tolist() == list(range(15, 24))
    assert len(task.parts["valid"]) == 3
    assert max(task.parts["valid"]) < 15


def test_a_test_set_of_its_own_is_all_that_is_tested() -> None:
    task = ClassifyTask.of(some_sequences(), test=some_sequences(5, seed=3))
    assert task.parts["test"].tolist() == list(range(5))
    assert len(task.parts["train"]) + len(task.parts["valid"]) == 24


def test_without_validation_all_others_train() -> None:
    parts = ClassifyTask.of(some_sequences(), valid_share=0.0).parts
    assert (parts["train"] == parts["valid"]).all()
    assert len(parts["train"]) + len(parts["test"]) == 24


def test_too_few_sequences_are_refused() -> None:
    with pytest.raises(DataError, match="expected sequences in every part, got none for valid"):
        _ = ClassifyTask.of(some_sequences(2)).parts


def test_unknown_labels_of_the_test_set_are_refused() -> None:
    odd = replace(some_sequences(5), labels=np.array(["up", "down", "up", "side", "up"]))
    task = ClassifyTask.of(some_sequences(), test=odd)
    with pytest.raises(DataError, match="expected labels of the training part \\(down, up\\), got 'side' in the test"):
        task.rivals("test")


def test_few_sequences_are_split_in_time() -> None:
    sequences = some_sequences(2, "tag")
    cut = cut_in_time(sequences, 0.25, 0.25)
    assert cut.values is sequences.values
    assert cut.parts == ("train", "valid", "test") * 2
    assert cut.ids[:3] == ("s0, train", "s0, valid", "s0, test")
    assert set(sequences.starts.tolist()) <= set(cut.starts.tolist())
    short = cut_in_time(sequences, 0.01, 0.25)
    assert short.parts == ("train", "train")


def test_labels_that_single_precision_cannot_hold_are_refused() -> None:
    numbers = np.array([2e201, *np.arange(23.0)])
    with pytest.raises(DataError, match=r"expected labels up to 3\.4e\+38 in size, got 2e\+201 of the sequence s0"):
        RegressTask.of(replace(some_sequences(kind="regress"), labels=numbers)).parts  # noqa: B018


def test_one_recording_can_do_without_validation() -> None:
    cut = cut_in_time(some_sequences(1, "tag"), 0.0, 0.25)
    assert cut.parts == ("train", "test")
    task = TagTask.of(cut, valid_share=0.0)
    assert {name: which.tolist() for name, which in task.parts.items()} == {"train": [0], "valid": [0], "test": [1]}


def test_a_test_share_beside_a_test_file_is_said_to_do_nothing() -> None:
    for share, said in ((0.2, False), (0.3, True)):
        task = ClassifyTask.of(some_sequences(), test=some_sequences(5, seed=1), test_share=share)
        assert ("--test-share 0.3 is not used" in task.suited_config()[1]) == said


def test_lengths_that_are_told_are_also_those_of_the_test_file() -> None:
    train, test = some_sequences(24), some_sequences(5, seed=1)
    longer = replace(test, starts=np.array([0, *test.starts[-1:]]), ids=test.ids[:1], labels=np.array(["up"]))
    told = ClassifyTask.of(train, test=longer).suited_config()[1]
    assert told.startswith(f"25 sequences of {train.lengths.min()} to {longer.lengths.max()} steps")
    assert longer.lengths.max() > train.lengths.max()
