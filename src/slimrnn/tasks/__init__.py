"""Tasks: data, loss, scores and baselines; no training code, no settings of papers."""

from __future__ import annotations

from slimrnn._moved import moved
from slimrnn.tasks.adding import AddingTask
from slimrnn.tasks.averages import average
from slimrnn.tasks.comparison import Contestant, comparison_table, draw_comparison, plot_comparison
from slimrnn.tasks.configs import config_from_dict, config_to_dict
from slimrnn.tasks.copy import CopyTask
from slimrnn.tasks.dates import DatesTask
from slimrnn.tasks.generated import GeneratedTask
from slimrnn.tasks.loading import load_run, run_config
from slimrnn.tasks.mnist_highway import MnistHighwayTask
from slimrnn.tasks.own import ClassifyTask, ForecastTask, RegressTask, TagTask
from slimrnn.tasks.pixel_mnist import PixelMnistTask
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.tasks.recommend import RecommendTask
from slimrnn.tasks.registry import TASKS, find_task
from slimrnn.tasks.reverse import ReverseTask
from slimrnn.tasks.sort_digits import SortDigitsTask
from slimrnn.tasks.text_sampling import sample_text
from slimrnn.tasks.timit_frames import TimitFramesTask
from slimrnn.tasks.word_copy import WordCopyTask
from slimrnn.tasks.youtube8m import YouTube8MTask

__all__ = [
    "TASKS",
    "AddingTask",
    "ClassifyTask",
    "Contestant",
    "CopyTask",
    "DatesTask",
    "ForecastTask",
    "GeneratedTask",
    "MnistHighwayTask",
    "PTBCharsTask",
    "PixelMnistTask",
    "RecommendTask",
    "RegressTask",
    "ReverseTask",
    "SortDigitsTask",
    "TagTask",
    "TimitFramesTask",
    "WordCopyTask",
    "YouTube8MTask",
    "average",
    "comparison_table",
    "config_from_dict",
    "config_to_dict",
    "draw_comparison",
    "find_task",
    "load_run",
    "plot_comparison",
    "run_config",
    "sample_text",
]

__getattr__ = moved(__name__, {"find_row": "slimrnn.papers", "paper_rows": "slimrnn.papers"})
