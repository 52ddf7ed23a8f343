"""A figure with title and caption, as PNG or SVG."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CaptionedFigure:
    """A figure with its name, its title and a caption that says what it shows."""

    name: str
    title: str
    caption: str
    figure: Figure
    _drawn: dict[str, bytes] = field(default_factory=dict, repr=False)  # by kind

    def rendered(self, kind: str) -> bytes:
        """As "png" or "svg"; the same figure gives the same bytes."""
        if kind not in self._drawn:
            self._drawn[kind] = self._render(kind)
        return self._drawn[kind]

    def _render(self, kind: str) -> bytes:
        import matplotlib as mpl

        drawn = io.BytesIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": self.name}):
            layout = self.figure.get_layout_engine()
            if layout is not None:  # once for all kinds: it takes longer than to draw
                layout.execute(self.figure)
                self.figure.set_layout_engine(None)
            metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
            self.figure.savefig(drawn, format=kind, dpi=200, metadata=metadata)
        return drawn.getvalue()
