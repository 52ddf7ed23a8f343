"""A row's criterion, and which scores meet it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slimrnn.papers import PaperRow
from slimrnn.tasks import CopyTask
from slimrnn.training import Config

ROW = PaperRow("a", "p", "c", Config(CopyTask(3)))


def test_a_bound_is_met_on_the_right_side() -> None:
    below = replace(ROW, bound=0.5)
    above = replace(below, direction="at least", split="half")
    assert [below.passes(x) for x in (0.4, 0.5, 0.6, float("nan"))] == [True, True, False, False]
    assert [above.passes(x) for x in (0.4, 0.5, 0.6, float("nan"))] == [False, True, True, False]
    assert (below.criterion, above.criterion) == ("test loss ≤ 0.5", "half loss ≥ 0.5")


def test_another_row_can_be_the_bound() -> None:
    row = replace(ROW, compared_with="b")
    assert row.criterion == "test loss ≤ that of b"
    assert [row.passes(x, 0.5) for x in (0.4, 0.6)] == [True, False]
    with pytest.raises(ValueError, match="expected a bound, or the score of another row, to judge a by"):
        row.passes(0.4)


def test_contradictory_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="expected row a to have a bound or another row, and both only in a race"):
        replace(ROW, bound=1.0, compared_with="b")
    with pytest.raises(ValueError, match="expected row a"):
        replace(ROW, bound=1.0, race="ahead")


def test_the_criterion_names_the_order_of_a_race_or_the_last_update() -> None:
    ahead = replace(ROW, bound=1.0, compared_with="b", race="ahead")
    assert ahead.criterion == "test loss ≤ 1 before b"
    assert replace(ahead, race="behind").criterion == "test loss ≤ 1 not before b"
    assert replace(ahead, race="second").criterion == "test loss ≤ 1 after b"
    assert replace(ROW, bound=1.0, by=30_000).criterion == "test loss ≤ 1 by update 30,000"
    assert ROW.criterion == ""


def test_a_second_score_has_to_be_met_as_well() -> None:
    row = replace(ROW, bound=0.5, direction="at least", score="hit_at_1", second=("perr", 0.4))
    assert row.criterion == "test hit_at_1 ≥ 0.5 and perr ≥ 0.4"
    assert [row.passes_second({"hit_at_1": 0.6, "perr": perr}) for perr in (0.39, 0.4)] == [False, True]
    assert not row.passes_second({"hit_at_1": 0.6})
    assert ROW.passes_second({})
