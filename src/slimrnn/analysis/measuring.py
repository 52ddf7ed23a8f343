"""For `slimrnn.training.memory_log`, until it imports from `slimrnn.analysis.doctor.measurements`."""

from slimrnn.analysis.doctor.measurements import chosen_sequences

__all__ = ["chosen_sequences"]
