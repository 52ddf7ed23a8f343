"""What a compressed model may cost: a share, or a number of parameters, of bytes or of multiply-adds per step."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from slimrnn._checks import check_number

Unit = Literal["parameters", "bytes", "macs"]
UNITS: dict[str, Unit] = {
    "": "parameters",
    "parameters": "parameters",
    "params": "parameters",
    "b": "bytes",
    "bytes": "bytes",
    "macs": "macs",
    "multiply-adds": "macs",
}
PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
WANTED = 'a share such as 0.2 or "20%", a number of parameters such as 50_000, "200 KB" or "1.2M macs"'
WHOLE = r"\d{1,3}(?:,\d{3})+|\d[\d_]*"  # a comma only between thousands
NUMBER, NAMES = rf"((?:{WHOLE})(?:\.\d+)?(?:e\d+)?)", r"(b|bytes|macs|multiply-adds|parameters|params)"
TEXT = re.compile(rf"\s*{NUMBER}\s*(%|[kmg]i?)?\s*{NAMES}?\s*")


@dataclass(frozen=True)
class Budget:
    """`amount` of `unit`, or of a model's own cost in that unit where `is_share`."""

    amount: float
    unit: Unit = "parameters"
    is_share: bool = False

    def of(self, whole: int) -> int:
        """In numbers, for a model whose recurrent layers cost `whole`."""
        return math.floor(self.amount * whole + 1e-9) if self.is_share else math.floor(self.amount)

    def __str__(self) -> str:
        if self.is_share:
            return f"{100 * self.amount:g} % of the {IN_WORDS[self.unit]}"
        return f"{self.amount:,.0f} {IN_WORDS[self.unit]}"


IN_WORDS = {"parameters": "parameters", "bytes": "bytes", "macs": "multiply-adds per step"}


def read_budget(value: float | str | Budget) -> Budget:
    """From 0.2, "20%", 50_000, "200 KB" or "1.2M macs"."""
    if isinstance(value, Budget):
        return value
    if isinstance(value, str):
        return _read_text(value)
    check_number("budget", value)
    if value <= 0:
        raise ValueError(f"expected a positive budget, got {value}")
    if isinstance(value, float) and value <= 1:
        return Budget(value, is_share=True)
    return Budget(float(value))


def _read_text(text: str) -> Budget:
    match = TEXT.fullmatch(text.lower())
    if match is None:
        raise ValueError(f"expected {WANTED} as budget, got {text!r}")
    digits, prefix, unit = match.group(1), match.group(2) or "", UNITS[match.group(3) or ""]
    amount = float(digits.replace("_", "").replace(",", ""))
    if amount <= 0:
        raise ValueError(f"expected a positive budget, got {text!r}")
    if prefix == "%":
        if amount > 100:
            raise ValueError(f"expected a share of at most 100%, got {text!r}")
        return Budget(amount / 100, unit, is_share=True)
    if not prefix and match.group(3) is None and amount <= 1 and "." in digits:
        return Budget(amount, is_share=True)
    return Budget(amount * PREFIXES[prefix], unit)
