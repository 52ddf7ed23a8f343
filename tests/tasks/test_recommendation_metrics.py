"""Scores of rankings, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from slimrnn.tasks.recommendation_metrics import (
    average_precision,
    discounted_gain,
    ranking_scores,
    ranks_of,
    recall,
    reciprocal_rank,
)


def ranks(*places: int) -> torch.Tensor:
    return torch.tensor([places])


def test_ranks_by_hand() -> None:
    scores = torch.tensor([[0.1, 0.9, 0.5, 0.3]])
    assert [int(ranks_of(scores, torch.tensor([[item]]))) for item in range(4)] == [4, 1, 2, 3]


def test_ties_count_against_the_net() -> None:
    scores = torch.tensor([[0.5, 0.9, 0.5, 0.5, 0.1]])
    assert int(ranks_of(scores, torch.tensor([[2]]))) == 4
    assert int(ranks_of(torch.zeros(1, 100), torch.tensor([[0]]))) == 100


def test_scores_that_are_no_numbers_come_last() -> None:
    assert int(ranks_of(torch.full((1, 9), math.nan), torch.tensor([[3]]))) == 9


def test_relevant_items_of_one_score_share_out_its_places() -> None:
    scores = torch.tensor([[0.5, 0.5, 0.5, 0.9, 0.1]])
    assert ranks_of(scores, torch.tensor([[4, 0, 1]])).tolist() == [[3, 4, 5]]
    assert ranks_of(scores, torch.tensor([[0, 3, -1]])).tolist() == [[1, 4, 0]]


def test_items_left_out_have_no_rank() -> None:
    scores = torch.tensor([[0.1, -torch.inf, 0.5, -torch.inf]])
    assert int(ranks_of(scores, torch.tensor([[0]]))) == 2


@pytest.mark.parametrize("place", [1, 2, 7, 20, 21, 400])
def test_one_relevant_item(place: int) -> None:
    found = {name: float(value) for name, value in ranking_scores(ranks(place)).items()}
    assert found == pytest.approx(
        {
            "map_at_20": 1 / place if place <= 20 else 0,
            "recall_at_20": float(place <= 20),
            "ndcg_at_10": 1 / math.log2(place + 1) if place <= 10 else 0,
            "mrr": 1 / place,
        }
    )


def test_several_relevant_items() -> None:
    places = ranks(2, 3, 30)
    assert float(average_precision(places, 20)) == pytest.approx((1 / 2 + 2 / 3) / 3)
    assert float(average_precision(places, 2)) == pytest.approx((1 / 2) / 2)  # min(R, k) = 2
    assert float(recall(places, 20)) == pytest.approx(2 / 3)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert float(discounted_gain(places, 10)) == pytest.approx((1 / math.log2(3) + 1 / 2) / ideal)
    assert float(reciprocal_rank(places)) == pytest.approx(1 / 2)


@pytest.mark.parametrize("relevant", [1, 5, 40])
def test_a_perfect_ranking_has_a_precision_and_a_gain_of_one(relevant: int) -> None:
    places = torch.arange(1, relevant + 1)[None]
    assert float(average_precision(places, 20)) == pytest.approx(1)
    assert float(discounted_gain(places, 10)) == pytest.approx(1)


def test_rankings_with_fewer_relevant_items_than_others() -> None:
    places = torch.tensor([[1, 4], [4, 0], [0, 0]])
    assert average_precision(places, 20).tolist() == pytest.approx([(1 + 2 / 4) / 2, 1 / 4, 0])
    assert recall(places, 2).tolist() == pytest.approx([1 / 2, 0, 0])
    assert reciprocal_rank(places).tolist() == pytest.approx([1, 1 / 4, 0])


def test_fewer_candidates_than_places() -> None:
    scores = torch.tensor([[0.3, 0.2, 0.1]])
    found = ranking_scores(ranks_of(scores, torch.tensor([[2]])))
    assert float(found["map_at_20"]) == pytest.approx(1 / 3)
    assert float(found["recall_at_20"]) == 1
