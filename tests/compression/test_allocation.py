"""Sharing a budget out."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from slimrnn.compression.allocation import Choice, allocate

choices = st.lists(st.builds(Choice, st.integers(1, 40), st.floats(0, 10)), min_size=1, max_size=5)
options = st.lists(choices, min_size=1, max_size=4)


def total(given: list[list[Choice]], chosen: list[int]) -> Choice:
    picked = [some[k] for some, k in zip(given, chosen, strict=True)]
    return Choice(sum(c.cost for c in picked), sum(c.error for c in picked))


@settings(max_examples=50, deadline=None)
@given(given=options, budget=st.integers(0, 160))
def test_it_is_the_best_of_all_choices_within_the_budget(given: list[list[Choice]], budget: int) -> None:
    every = itertools.product(*(range(len(some)) for some in given))
    affordable = [found for k in every if (found := total(given, list(k))).cost <= budget]
    chosen = allocate(given, budget, 160)
    if not affordable:
        assert chosen is None
        return
    assert chosen is not None
    found = total(given, chosen)
    assert found.cost <= budget
    assert found.error <= min(one.error for one in affordable) + 1e-9


@settings(max_examples=50, deadline=None)
@given(given=options, budgets=st.lists(st.integers(0, 10**7), min_size=2, max_size=6), scale=st.integers(1, 10**5))
def test_errors_never_rise_with_the_budget(given: list[list[Choice]], budgets: list[int], scale: int) -> None:
    """Also where costs are rounded up to the grid."""
    large = [[Choice(c.cost * scale, c.error) for c in some] for some in given]
    whole = sum(max(c.cost for c in some) for some in large)
    found = [allocate(large, budget, whole) for budget in sorted(budgets)]
    errors = [total(large, chosen).error for chosen in found if chosen is not None]
    assert all(more >= less - 1e-9 for more, less in itertools.pairwise(errors))
