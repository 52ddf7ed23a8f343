"""The report of a compression as one HTML page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from slimrnn._pages import inline, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slimrnn.compression.report import CompressionReport

OF_MATRICES = ("matrix", "before", "now", "parameters", "multiply-adds", "weighted error", "energy kept")


def page_of(report: CompressionReport, figure: Figure | None) -> str:
    """With the Pareto figure, where there is one."""
    ratio = report.before.parameters / report.after.parameters
    summary = [f"{ratio:.3g} times fewer parameters in the recurrent layers", f"{report.budget}; {report.weighted_by}."]
    if report.updates:
        summary.append(f"Fine-tuned for {report.updates:,} updates; the best net is of update {report.best_update:,}.")
    body = [
        "<header><h1>Compression report</h1></header>",
        _card("".join(f"<p>{escape(text)}</p>" for text in summary), "summary"),
        "<h2>Before and after</h2>",
        _card(_table([("recurrent layers", "before", "now", "now / before"), *report.compared()])),
        "<h2>Matrices</h2>",
        _card(_table([OF_MATRICES, *_rows(report)])),
    ]
    if figure is not None:
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", bbox_inches="tight", transparent=True)
        caption = "Other budgets, right after the compression, beside the net before it and the one that was made."
        body += ["<h2>Other budgets</h2>", f'<figure class="card">{inline(drawn.getvalue().decode(), "p", caption)}']
        body.append(f"<figcaption>{caption}</figcaption></figure>")
    if report.left:
        rest = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in report.left.items())
        body += ["<h2>Left alone</h2>", _card(f"<ul>{rest}</ul>")]
    return page("Compression report", body)


def _rows(report: CompressionReport) -> list[tuple[str, ...]]:
    return [
        (
            m.name,
            m.before,
            m.structure,
            f"{m.parameters_before:,} → {m.parameters:,}",
            f"{m.macs_before:,} → {m.macs:,}",
            f"{m.weighted_error:.3f}",
            f"{100 * m.energy_kept:.2f} %",
        )
        for m in report.matrices
    ]


def _card(content: str, kind: str = "") -> str:
    return f'<section class="card {kind}">{content}</section>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *others = rows
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    told = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in others)
    return f'<table class="numbers"><tr>{heads}</tr>{told}</table>'
