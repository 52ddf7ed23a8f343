"""Tasks on sequences that users bring, from files or from memory."""

from __future__ import annotations

from slimrnn.tasks.own.classify import ClassifyTask
from slimrnn.tasks.own.sequences_task import SequencesTask

__all__ = ["ClassifyTask", "SequencesTask"]
