"""For `slimrnn.training.memory_log`, until it imports from `slimrnn.analysis.matrices.spectrum`."""

from slimrnn.analysis.matrices.spectrum import Spectrum, spectra, spectrum

__all__ = ["Spectrum", "spectra", "spectrum"]
