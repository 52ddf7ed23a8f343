"""Every task and every row of the papers, by name."""

from __future__ import annotations

from slimrnn._checks import suggestion
from slimrnn._texts import shown
from slimrnn.tasks.adding import AddingTask
from slimrnn.tasks.copy import CopyTask
from slimrnn.tasks.dates import DatesTask
from slimrnn.tasks.mnist_highway import MnistHighwayTask
from slimrnn.tasks.pixel_mnist import PixelMnistTask
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.tasks.recommend import RecommendTask
from slimrnn.tasks.reverse import ReverseTask
from slimrnn.tasks.sort_digits import SortDigitsTask
from slimrnn.tasks.timit_frames import TimitFramesTask
from slimrnn.tasks.word_copy import WordCopyTask
from slimrnn.tasks.youtube8m import YouTube8MTask
from slimrnn.training.errors import ConfigError
from slimrnn.training.paper import PaperRow
from slimrnn.training.task import Task

TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        CopyTask,
        WordCopyTask,
        AddingTask,
        PixelMnistTask,
        MnistHighwayTask,
        PTBCharsTask,
        TimitFramesTask,
        YouTube8MTask,
        RecommendTask,
        ReverseTask,
        SortDigitsTask,
        DatesTask,
    )
}


def find_task(name: str) -> type[Task]:
    """The task of that name."""
    if not isinstance(name, str) or name not in TASKS:
        raise ConfigError(f"expected a task of {', '.join(TASKS)}, got {shown(name)}{suggestion(name, TASKS)}")
    return TASKS[name]


def paper_rows() -> dict[str, PaperRow]:
    """What the papers report."""
    return {row.name: row for task in TASKS.values() for row in task.papers()}


def find_row(name: str) -> PaperRow:
    """The row of that name."""
    rows = paper_rows()
    if name not in rows:
        raise ConfigError(f"expected the name of a paper's row, got {name!r}{suggestion(name, rows)}")
    return rows[name]
