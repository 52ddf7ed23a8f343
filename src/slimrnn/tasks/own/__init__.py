"""Tasks on sequences that users bring, from files or from memory."""

from __future__ import annotations

from slimrnn.tasks.own.classify import ClassifyTask
from slimrnn.tasks.own.forecast import ForecastTask
from slimrnn.tasks.own.own_task import OwnTask
from slimrnn.tasks.own.regress import RegressTask
from slimrnn.tasks.own.sequences_task import SequencesTask
from slimrnn.tasks.own.tag import TagTask

__all__ = ["ClassifyTask", "ForecastTask", "OwnTask", "RegressTask", "SequencesTask", "TagTask"]
