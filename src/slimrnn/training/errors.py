"""What can go wrong in a run, each with a message of one line."""

from __future__ import annotations


class TrainingError(Exception):
    """Something that a user can understand and mend; the message says what and how."""


class ConfigError(TrainingError, ValueError):
    """Settings that are impossible or do not go together."""


class RunDirectoryError(TrainingError):
    """A run directory that exists, does not exist, or cannot be written."""


class CheckpointError(TrainingError):
    """A file that is not a whole checkpoint."""


class TrainingDiverged(TrainingError):
    """Gradients that stayed infinite or NaN after all the recoveries allowed."""


class LostProcess(TrainingError):
    """Another process of those that train together ended, or its machine did."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether there is not as much memory as was asked for, in numpy's words or in torch's, which has no class for it
    on CPUs."""
    return isinstance(error, MemoryError) or any(
        words in str(error) for words in ("can't allocate memory", "out of memory", "calculation overflowed")
    )
