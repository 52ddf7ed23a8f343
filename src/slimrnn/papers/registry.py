"""All rows of the papers, by name. A new row is added to `ROWS` in the file of its task."""

from __future__ import annotations

from slimrnn._checks import suggestion
from slimrnn.errors import ConfigError
from slimrnn.papers import (
    adding,
    copy,
    mnist_highway,
    pixel_mnist,
    ptb_chars,
    recommend,
    small_mnist,
    timit_frames,
    word_copy,
    youtube8m,
)
from slimrnn.papers.row import PaperRow

_BY_NAME: dict[str, PaperRow] = {}


def register_rows(*rows: PaperRow) -> None:
    """Make rows known to `find_row` and `slimrnn reproduce`."""
    for row in rows:
        if row.name in _BY_NAME:
            raise ConfigError(f"expected a new name for a paper's row, got {row.name!r}, which exists")
        _BY_NAME[row.name] = row


for _module in (
    copy,
    word_copy,
    adding,
    pixel_mnist,
    small_mnist,
    mnist_highway,
    ptb_chars,
    timit_frames,
    youtube8m,
    recommend,
):
    register_rows(*_module.ROWS)


def paper_rows() -> dict[str, PaperRow]:
    """All rows by name, in the order in which `RESULTS.md` lists them."""
    return dict(_BY_NAME)


def find_row(name: str) -> PaperRow:
    """The row of that name."""
    if name not in _BY_NAME:
        raise ConfigError(f"expected the name of a paper's row, got {name!r}{suggestion(name, _BY_NAME)}")
    return _BY_NAME[name]
