"""The engine: from a task and a configuration to a trained net, resumable to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slimrnn.errors import (
    CheckpointError,
    ConfigError,
    LostProcess,
    RunDirectoryError,
    TrainingDiverged,
    TrainingError,
)
from slimrnn.training.config import Config, ModelConfig, OptimConfig
from slimrnn.training.task import Batch, Indices, Outcome, Samples, Score, Task

if TYPE_CHECKING:
    from slimrnn.training.loop import Callback
    from slimrnn.training.memory_log import MemoryLog
    from slimrnn.training.models.sequence_model import SequenceModel
    from slimrnn.training.module import SequenceModule
    from slimrnn.training.record import Result, Run
    from slimrnn.training.run import evaluate, resume, train

__all__ = [
    "Batch",
    "Callback",
    "CheckpointError",
    "Config",
    "ConfigError",
    "Indices",
    "LostProcess",
    "MemoryLog",
    "ModelConfig",
    "OptimConfig",
    "Outcome",
    "Result",
    "Run",
    "RunDirectoryError",
    "Samples",
    "Score",
    "SequenceModel",
    "SequenceModule",
    "Task",
    "TrainingDiverged",
    "TrainingError",
    "evaluate",
    "resume",
    "train",
]

_ELSEWHERE = {
    "Callback": "loop",
    "MemoryLog": "memory_log",
    "SequenceModel": "models.sequence_model",
    "SequenceModule": "module",
    "Result": "record",
    "Run": "record",
    "evaluate": "run",
    "resume": "run",
    "train": "run",
}


def __getattr__(name: str) -> Any:
    """What needs Lightning or safetensors, which the core does without, is imported when it is asked for."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
