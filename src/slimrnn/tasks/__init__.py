"""The papers' tasks: data, loss, scores, baselines and settings; no training code."""

from __future__ import annotations

from slimrnn.tasks.adding import AddingTask
from slimrnn.tasks.averages import average
from slimrnn.tasks.configs import config_from_dict, config_to_dict
from slimrnn.tasks.copy import CopyTask
from slimrnn.tasks.generated import GeneratedTask
from slimrnn.tasks.pixel_mnist import PixelMnistTask
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.tasks.registry import TASKS, find_row, find_task, paper_rows
from slimrnn.tasks.word_copy import WordCopyTask

__all__ = [
    "TASKS",
    "AddingTask",
    "CopyTask",
    "GeneratedTask",
    "PTBCharsTask",
    "PixelMnistTask",
    "WordCopyTask",
    "average",
    "config_from_dict",
    "config_to_dict",
    "find_row",
    "find_task",
    "paper_rows",
]
