"""HTML pages that load nothing: light and dark, for phones and desks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from slimrnn._style_sheet import STYLE
from slimrnn.plotting import COLORS, GREY, GRID

VARIABLES = {color: f"var(--c{number})" for number, color in enumerate(COLORS)} | {
    GREY: "var(--grey)",
    GRID: "var(--grid)",
    "#ffffff": "var(--card)",
    "#000000": "var(--ink)",
}


def page(title: str, body: Sequence[str]) -> str:
    """A whole page."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',  # or the browser would ask for one
            f"<title>{escape(title)}</title><style>{STYLE}</style></head>",
            "<body><main>",
            *body,
            "</main></body></html>\n",
        ]
    )


def inline(svg: str, prefix: str, alt: str, colors: Mapping[str, str] | None = None) -> str:
    """A drawing of matplotlib as part of a page: colours that follow the scheme, names that are its own, any width."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'id="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
    for color, variable in {**VARIABLES, **(colors or {})}.items():
        svg = svg.replace(color, variable)
    return svg.replace("<svg", f'<svg role="img" aria-label="{alt}"', 1)
