"""The colours of all pictures."""

from __future__ import annotations

COLORS = ("#0b6bcb", "#c8553d", "#2a8c5a", "#8a5bb5", "#b8860b", "#3a3a3a")
GREY, PALE, GRID = "#666666", "#9db4cc", "#e8e8e8"
