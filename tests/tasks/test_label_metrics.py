"""Scores of rankings, by hand and by other people's code."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torchmetrics.functional.classification import binary_average_precision

from slimrnn.tasks.label_metrics import (
    average_precisions,
    global_average_precision,
    mean_average_precision,
    precisions,
    ranking,
)


def outputs(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_a_ranking_puts_the_smaller_class_first_among_equals() -> None:
    output = outputs([1, 3, 2, 3, 2, 2], [5, 5, 5, 5, 5, 5], [0, 1, 2, 3, 4, 5])
    assert ranking(output, 4).tolist() == [[1, 3, 2, 4], [0, 1, 2, 3], [5, 4, 3, 2]]
    assert ranking(output, 20).shape == (3, 6)  # of fewer classes, all


def test_a_ranking_is_a_stable_sort() -> None:
    output = torch.randint(0, 30, (50, 200), generator=torch.Generator().manual_seed(0)).double()
    expected = output.sort(dim=-1, descending=True, stable=True).indices[:, :20]
    assert torch.equal(ranking(output, 20), expected)


def test_hits_and_precision_at_equal_recall_by_hand() -> None:
    output = outputs([9, 8, 7, 6, 5], [9, 8, 7, 6, 5], [9, 8, 7, 6, 5], [9, 9, 9, 1, 1])
    targets = outputs([1, 0, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1], [0, 1, 0, 0, 1])
    hits, equal_recall = precisions(output, targets)
    assert hits.tolist() == [1, 0, 0, 0]  # the tie goes to the first class
    assert equal_recall.tolist() == [1 / 2, 2 / 3, 0, 1 / 2]


def test_videos_without_labels_and_no_videos() -> None:
    output = outputs([9, 8, 7], [7, 8, 9])
    assert [part.tolist() for part in precisions(output, torch.zeros(2, 3))] == [[0, 0], [0, 0]]
    assert [part.tolist() for part in precisions(output[:0], torch.zeros(0, 3))] == [[], []]
    some, nothing = precisions(output, outputs([0, 0, 0], [0, 0, 1]))
    assert (some.tolist(), nothing.tolist()) == ([0, 1], [0, 1])


def test_global_average_precision_by_hand() -> None:
    """Ranks 1 and 3 of 5 are right, and one label is not in the list: (1/1 + 2/3) / 3."""
    confidence, correct = torch.tensor([0.9, 0.2, 0.8, 0.7, 0.1]), torch.tensor([1.0, 0, 0, 1, 0])
    assert global_average_precision(confidence, correct, 3) == pytest.approx((1 + 2 / 3) / 3)


def test_equal_confidences_count_together_in_any_order() -> None:
    """After the first, three of equal confidence, of which two are right: precision 2/4 for both."""
    confidence, correct = torch.tensor([0.9, 0.5, 0.5, 0.5, 0.1]), torch.tensor([0.0, 1, 0, 1, 1])
    expected = (2 / 4 + 2 / 4 + 3 / 5) / 3
    for seed in range(5):
        order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
        assert global_average_precision(confidence[order], correct[order], 3) == pytest.approx(expected)


def test_mean_average_precision_by_hand() -> None:
    """Class 0: right, wrong, right of 2 labels; class 1: wrong, right of 4; 2 is never predicted; 3 has no label."""
    classes = torch.tensor([0, 1, 0, 1, 0, 3])
    confidence, correct = torch.tensor([0.9, 0.8, 0.5, 0.3, 0.2, 0.9]), torch.tensor([1.0, 0, 0, 1, 1, 0])
    labels = torch.tensor([2, 4, 1, 0])
    each = [(1 + 2 / 3) / 2, (1 / 2) / 4, 0, 0]
    assert average_precisions(confidence, correct, classes, labels).tolist() == pytest.approx(each)
    assert mean_average_precision(confidence, correct, classes, labels) == pytest.approx(sum(each) / 3)


def test_nothing_to_rank_or_to_find_scores_zero() -> None:
    nothing, classes = torch.zeros(0), torch.zeros(0, dtype=torch.int64)
    assert global_average_precision(nothing, nothing, 5) == 0
    assert global_average_precision(torch.ones(3), torch.zeros(3), 0) == 0
    assert mean_average_precision(nothing, nothing, classes, torch.tensor([3, 0])) == 0
    assert mean_average_precision(nothing, nothing, classes, torch.zeros(2)) == 0


@pytest.mark.parametrize("levels", [7, 10_000])
def test_average_precisions_are_those_of_torchmetrics(levels: int) -> None:
    random = torch.Generator().manual_seed(levels)
    confidence = torch.randint(0, levels, (3_000,), generator=random) / levels
    correct = (torch.rand(3_000, generator=random) < confidence).double()
    classes = torch.randint(0, 4, (3_000,), generator=random)
    labels = torch.stack([correct[classes == c].sum() for c in range(4)])
    found = average_precisions(confidence, correct, classes, labels)
    for c in range(4):
        here = classes == c
        expected = binary_average_precision(confidence[here], correct[here].long())
        assert float(found[c]) == pytest.approx(float(expected), abs=1e-5)
    whole = binary_average_precision(confidence, correct.long())
    assert global_average_precision(confidence, correct, float(correct.sum())) == pytest.approx(float(whole), abs=1e-5)
