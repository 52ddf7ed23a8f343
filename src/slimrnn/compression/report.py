"""What a compression did: a table, numbers before and after, and how other budgets would have done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from slimrnn._disk import disk_errors, whole_file
from slimrnn.errors import RunDirectoryError

HEADINGS = ("matrix", "before", "now", "parameters", "multiply-adds", "weighted error", "energy kept")


@dataclass(frozen=True)
class MatrixReport:
    """One matrix, before and after."""

    name: str
    before: str  #: structure
    structure: str
    parameters_before: int
    parameters: int
    macs_before: int
    macs: int
    weighted_error: float  #: ‖G^½ (W − Ŵ) C^½‖ / ‖G^½ W C^½‖
    energy_kept: float  #: 1 minus its square
    plain_error: float  #: ‖W − Ŵ‖ / ‖W‖


@dataclass(frozen=True)
class Costs:
    """Of the recurrent layers of a model; milliseconds of one sequence on this machine, and the model's score."""

    parameters: int
    bytes: int
    macs: int
    step_ms: float
    sequence_ms: float
    score: float | None = None


@dataclass(frozen=True)
class Point:
    """Another budget, right after the compression."""

    share: float
    parameters: int
    sequence_ms: float
    score: float | None


@dataclass(frozen=True)
class CompressionReport:
    """`print` shows it as a table; `save` writes it."""

    budget: str
    weighted_by: str
    score_name: str  #: what the scores are; less is better
    matrices: tuple[MatrixReport, ...]
    before: Costs
    after: Costs
    right_after: float | None = None  #: the score before fine-tuning
    updates: int = 0  #: of fine-tuning
    best_update: int = 0
    left: dict[str, str] = field(default_factory=dict)  #: why matrices were left alone
    points: tuple[Point, ...] = ()

    def __str__(self) -> str:
        rows = [HEADINGS, *(_row(m) for m in self.matrices)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.budget}; {self.weighted_by}", ""]
        for row in rows:
            cells = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
            lines.append("  ".join(cells).rstrip())
        lines += ["", *_table([("recurrent layers", "before", "now", "now / before"), *self.compared()])]
        if self.updates:
            lines += ["", f"fine-tuned for {self.updates:,} updates; the best net is of update {self.best_update:,}"]
        lines += [f"{name} stays: {reason}" for name, reason in self.left.items()]
        return "\n".join(lines)

    def compared(self) -> list[tuple[str, str, str, str]]:
        """Rows of before and after."""
        before, after = self.before, self.after
        rows = [
            _compared("parameters", before.parameters, after.parameters),
            _compared("bytes", before.bytes, after.bytes),
            _compared("multiply-adds per step", before.macs, after.macs),
            _compared("ms per step", before.step_ms, after.step_ms, 4),
            _compared("ms per sequence of 100 steps", before.sequence_ms, after.sequence_ms, 3),
        ]
        if after.score is not None and before.score is not None:
            if self.updates and self.right_after is not None:
                rows.append(_compared(f"{self.score_name}, right after", before.score, self.right_after, 4))
            rows.append(_compared(self.score_name, before.score, after.score, 4))
        return rows

    def as_dict(self) -> dict[str, object]:
        """As numbers, texts, lists and dicts."""
        return asdict(self)

    def save(self, directory: Path | str) -> Path:
        """Write report.txt, report.json, pareto.png and report.html; returns the directory."""
        from slimrnn.compression.report_page import page_of
        from slimrnn.plotting import save

        directory = Path(directory)
        with disk_errors(RunDirectoryError, "write", directory):
            directory.mkdir(parents=True, exist_ok=True)
        figure = None
        if self.points and self.points[0].score is not None:
            from slimrnn.compression.pareto import pareto_figure

            figure = pareto_figure(self)
            save(figure, directory / "pareto.png")
        texts = {
            "report.txt": f"{self}\n",
            "report.json": json.dumps(self.as_dict(), indent=1) + "\n",
            "report.html": page_of(self, figure),
        }
        for name, text in texts.items():
            with disk_errors(RunDirectoryError, "write", directory / name), whole_file(directory / name) as file:
                file.write(text.encode())
        return directory


def _row(m: MatrixReport) -> tuple[str, ...]:
    counts = (f"{m.parameters:,}", f"{m.macs:,}", f"{m.weighted_error:.3f}", f"{100 * m.energy_kept:.2f} %")
    return (m.name, m.before, m.structure, *counts)


def _compared(name: str, before: float, after: float, digits: int | None = None) -> tuple[str, str, str, str]:
    form = "," if digits is None else f".{digits}g"
    return name, format(before, form), format(after, form), f"{after / before:.3f}" if before else ""


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]
