"""Free functions that look at layers and trajectories from outside."""

from slimrnn.analysis.bptt import BPTT, elman_bptt, layer_bptt

__all__ = ["BPTT", "elman_bptt", "layer_bptt"]
