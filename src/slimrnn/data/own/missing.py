"""How files say that a value is missing."""

from __future__ import annotations

MISSING = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "?")
UNLABELLED = ("", "NA", "NaN", "nan", "?")  # "None" may be a class like any other
