"""Random numbers by address: the published generator, the same everywhere, independent of what else is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimrnn.training import random

KEYS = st.integers(0, 2**64 - 1)
MASK = 2**64 - 1


def splitmix(seed: int, count: int) -> list[int]:
    """The generator as it is published, one number after another."""
    outputs = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        outputs.append(z ^ (z >> 31))
    return outputs


def test_stream_is_the_published_test_vector() -> None:
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert random.stream(1234567, 5).tolist() == published


@given(KEYS, st.lists(st.integers(0, 300), min_size=1, max_size=5), st.integers(1, 4))
def test_each_sample_has_a_stream_that_starts_in_the_keys_own(key: int, indices: list[int], count: int) -> None:
    starts = splitmix(key, 301)
    expected = [splitmix(starts[i], count) for i in indices]
    assert random.bits(key, np.array(indices), count).tolist() == expected


@given(KEYS, st.integers(0, 2**62))
def test_a_sample_is_the_same_alone_and_among_others(key: int, index: int) -> None:
    among = random.bits(key, np.array([7, index, 3]), 9)[1, :4]
    assert among.tolist() == random.bits(key, np.array([index]), 4)[0].tolist()


def test_keys_are_the_same_on_every_machine() -> None:
    assert random.key(0, "copy", "train") == 16943309307752091776
    assert random.key(3) == 4282390215252963842
    assert random.key(np.int64(3), "a") == random.key(3, "a")  # type: ignore[arg-type]


def test_every_part_of_a_name_counts() -> None:
    names: list[tuple[int | str, ...]] = [("a", "b"), ("ab",), ("b", "a"), ("a", "b", ""), (1,), ("1",), ()]
    keys = {random.key(seed, *parts) for seed in (0, 1, -1) for parts in names}
    assert len(keys) == 3 * len(names)


def test_uniform_has_the_moments_of_the_unit_interval() -> None:
    draws = random.uniform(5, np.arange(1000), 100)
    assert draws.min() >= 0
    assert draws.max() < 1
    for power in (1, 2, 3, 4):
        spread = np.sqrt(1 / (2 * power + 1) - 1 / (power + 1) ** 2) / np.sqrt(draws.size)
        assert abs((draws**power).mean() - 1 / (power + 1)) < 5 * spread


def test_neighbours_are_uncorrelated() -> None:
    draws = random.uniform(5, np.arange(1000), 100) - 0.5
    pairs = {
        "samples": draws[:-1] * draws[1:],
        "places": draws[:, :-1] * draws[:, 1:],
        "keys": draws * (random.uniform(6, np.arange(1000), 100) - 0.5),
    }
    for name, products in pairs.items():
        assert abs(products.mean()) < 5 / 12 / np.sqrt(products.size), name


@pytest.mark.parametrize(("low", "high"), [(0, 2), (1, 11), (-3, 4), (0, 1), (5, 8)])
def test_integers_take_all_values_equally_often(low: int, high: int) -> None:
    draws = random.integers(11, np.arange(700), 50, low, high)
    values, counts = np.unique(draws, return_counts=True)
    assert values.tolist() == list(range(low, high))
    expected = draws.size / (high - low)
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_integers_reach_far() -> None:
    draws = random.integers(1, np.arange(1000), 1, 0, 2**32)
    assert draws.min() < 2**24
    assert draws.max() >= 2**32 - 2**24


@pytest.mark.parametrize(("low", "high"), [(0, 0), (3, 2), (0, 2**32 + 1)])
def test_impossible_ranges_are_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="expected 1 to 4,294,967,296 values to choose from, got"):
        random.integers(1, np.arange(2), 1, low, high)


@given(KEYS, st.integers(0, 200))
def test_permutation_has_every_number_once(key: int, size: int) -> None:
    assert sorted(random.permutation(key, size).tolist()) == list(range(size))


def test_permutation_puts_every_number_everywhere() -> None:
    places = np.array([random.permutation(random.key(0, epoch), 5) for epoch in range(2000)])
    for place in range(5):
        counts = np.bincount(places[:, place], minlength=5)
        assert np.abs(counts - 400).max() < 5 * np.sqrt(400)


def test_permutation_is_the_same_on_every_machine() -> None:
    assert random.permutation(3, 10).tolist() == [3, 0, 6, 4, 8, 2, 5, 1, 9, 7]
