"""What the papers report on tasks that slimrnn does not have yet."""

from __future__ import annotations

from slimrnn.training.paper import PaperRow


def _recommendation() -> PaperRow:
    """Factorized paper §3.3, table 2: the line that is not in the task yet."""
    return PaperRow(
        "recommendation-context-switching",
        "factorized §3.3",
        "MAP@20 0.126, more than the factorized net",
        needs="task recommend with a context-switching layer",
        score="map_at_20",
        direction="at least",
        compared_with="recommendation-factorized",
    )


PLANNED: tuple[PaperRow, ...] = (_recommendation(),)
