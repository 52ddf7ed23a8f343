"""The errors of slimrnn, each with a message of one line that says what is wrong and what to do."""

from __future__ import annotations


class DataError(Exception):
    """Data that is missing or damaged; the message names the file."""


class UsageError(Exception):
    """Bad input on the command line. The message reads "expected …, got …"."""


class ExportError(Exception):
    """A model that cannot be exported as it is, an export that differs from it, or a file that is no export."""


class SavedModelError(Exception):
    """A saved model that is damaged or foreign, or that needs what was not given."""


class PoolError(RuntimeError):
    """Something that a StreamPool cannot do."""


class PoolFull(PoolError):
    """As many streams are open, or as many frames wait, as the pool has room for."""


class PoolShutDown(PoolError):
    """A pool that takes nothing new."""


class StreamClosed(PoolError):
    """There is no such stream: it was closed, or is of another pool."""


class NotFinite(PoolError, ValueError):
    """A frame, or what came of it, is NaN or infinite."""


class SavedStreamError(PoolError, ValueError):
    """Bytes that are not the saved state of a stream, or of a stream of another model."""


class TrainingError(Exception):
    """Something in a run that the user can fix."""


class ConfigError(TrainingError, ValueError):
    """Settings that are impossible or contradict each other."""


class RunDirectoryError(TrainingError):
    """A run directory that exists already, does not exist, or cannot be read or written."""


class CheckpointError(TrainingError):
    """A damaged checkpoint, or a file that is no checkpoint."""


class TrainingDiverged(TrainingError):
    """Gradients that stayed infinite or NaN after all allowed recoveries."""


class LostProcess(TrainingError):
    """Another process of a distributed run ended, or its machine did."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed. On CPUs torch has no exception class for this, only messages."""
    return isinstance(error, MemoryError) or any(
        text in str(error) for text in ("can't allocate memory", "out of memory", "calculation overflowed")
    )
