"""Dates: from everyday formats to ISO 8601."""

from __future__ import annotations

import datetime
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from slimrnn.tasks.transduction import Pair, TransductionTask
from slimrnn.training import random
from slimrnn.training.task import Indices

SOURCE_ALPHABET = " ,./-" + string.digits + string.ascii_letters
TARGET_ALPHABET = string.digits + "-"
FIRST = datetime.date(1900, 1, 1)
DAYS = (datetime.date(2100, 1, 1) - FIRST).days
SHARES = {"train": (0, DAYS * 8 // 10), "valid": (DAYS * 8 // 10, DAYS * 9 // 10), "test": (DAYS * 9 // 10, DAYS)}
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _ordinal(day: int) -> str:
    ending = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def _month(date: datetime.date) -> str:
    return MONTHS[date.month - 1]


def _weekday(date: datetime.date) -> str:
    return WEEKDAYS[date.weekday()]


FORMATS: tuple[Callable[[datetime.date], str], ...] = (
    lambda d: f"{d.day} {_month(d)} {d.year}",
    lambda d: f"{_ordinal(d.day)} of {_month(d)}, {d.year}",
    lambda d: f"the {_ordinal(d.day)} of {_month(d)} {d.year}",
    lambda d: f"{_month(d)} {d.day}, {d.year}",
    lambda d: f"{_month(d)} {_ordinal(d.day)}, {d.year}",
    lambda d: f"{_month(d)[:3]} {d.day} {d.year}",
    lambda d: f"{d.day:02}-{_month(d)[:3].upper()}-{d.year}",
    lambda d: f"{_weekday(d)}, {d.day} {_month(d)} {d.year}",
    lambda d: f"{_weekday(d)[:3]} {_month(d)[:3]} {d.day:02} {d.year}",
    lambda d: f"{d.day}.{d.month}.{d.year}",
    lambda d: f"{d.day:02}/{d.month:02}/{d.year}",
    lambda d: f"{d.year}/{d.month}/{d.day}",
)


@dataclass(frozen=True)
class DatesTask(TransductionTask):
    """Write dates such as "3rd of March, 1987" as 1987-03-03, character by character."""

    name = "dates"
    default_updates = 2500

    @property
    def input_size(self) -> int:
        return len(SOURCE_ALPHABET)

    @property
    def output_size(self) -> int:
        return len(TARGET_ALPHABET)

    @property
    def longest(self) -> int:
        return len("1987-03-03")

    def texts(self, split: str, key: int, indices: Indices) -> list[tuple[str, str]]:
        """Each day from 1900 to 2099 belongs to one split, so the dates of the test set were never seen in any format.
        In formats with digits only, the day comes before the month, unless the year is first."""
        low, high = SHARES[split]
        places = random.integers(random.key(key, "days"), indices, 1, low, high)[:, 0]
        formats = random.integers(random.key(key, "forms"), indices, 1, 0, len(FORMATS))[:, 0]
        dates = [FIRST + datetime.timedelta(int(day)) for day in _days()[places]]
        return [(FORMATS[k](date), date.isoformat()) for date, k in zip(dates, formats.tolist(), strict=True)]

    def pairs(self, split: str, key: int, indices: Indices) -> list[Pair]:
        texts = self.texts(split, key, indices)
        return [(encode(source, SOURCE_ALPHABET), encode(target, TARGET_ALPHABET)) for source, target in texts]


def encode(text: str, alphabet: str) -> list[int]:
    """Characters to their indices in the alphabet."""
    for character in text:
        if character not in alphabet:
            raise ValueError(f"expected characters of {alphabet!r}, got {character!r}")
    return [alphabet.index(character) for character in text]


def decode(symbols: list[int], alphabet: str) -> str:
    """Indices to characters."""
    return "".join(alphabet[symbol] for symbol in symbols)


@lru_cache(maxsize=1)
def _days() -> Indices:
    """All days in random order, the same for every seed."""
    return random.permutation(random.key(0, "days"), DAYS)
