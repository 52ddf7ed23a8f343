"""Free functions that look at layers and trajectories from outside.

A room for each question: `model` finds the layers and runs them, `matrices` needs no data, `gradients` and `memory`
look at a layer on data, `time_series` at any series; `doctor` asks them all and draws conclusions. `lecture` has
equations to learn from."""

from slimrnn.analysis.doctor.diagnosis import Diagnosis, diagnose
from slimrnn.analysis.doctor.figures import layer_figures, save_figures
from slimrnn.analysis.doctor.finding import Finding
from slimrnn.analysis.doctor.html_report import html_report, write_report
from slimrnn.analysis.doctor.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.gradients.input_reach import input_reach
from slimrnn.analysis.gradients.reach import Reach
from slimrnn.analysis.gradients.state_reach import state_reach
from slimrnn.analysis.lecture.bptt import BPTT, elman_bptt, layer_bptt
from slimrnn.analysis.matrices.powers import PowerNorms, power_norms
from slimrnn.analysis.matrices.spectrum import Spectrum, spectra, spectrum
from slimrnn.analysis.memory.capacity import (
    Capacity,
    channel_information,
    gaussian_information,
    linear_capacity,
    memory_capacity,
)
from slimrnn.analysis.memory.gates import GateActivity, gate_values, measure_gates
from slimrnn.analysis.memory.memory_range import MemoryRange, memory_range
from slimrnn.analysis.model.costs import LayerCost, layer_costs
from slimrnn.analysis.model.layer_inputs import LayerInput, layer_inputs
from slimrnn.analysis.model.layers import LayerView, find_layers
from slimrnn.analysis.time_series.autocorrelation import AutocorrelationNorms, autocorrelation_norms
from slimrnn.analysis.time_series.convergence import Convergence, convergence
from slimrnn.analysis.time_series.long_memory import LongMemory, dfa, fluctuations, gph, local_whittle
from slimrnn.analysis.time_series.processes import (
    ar1,
    ar1_autocovariances,
    arfima,
    arfima_autocovariances,
    fgn_autocovariances,
    fractional_gaussian_noise,
    gaussian_process,
    white_noise,
)

__all__ = [
    "BPTT",
    "AutocorrelationNorms",
    "Capacity",
    "Convergence",
    "Diagnosis",
    "Finding",
    "GateActivity",
    "LayerCost",
    "LayerDiagnosis",
    "LayerInput",
    "LayerView",
    "LongMemory",
    "MemoryRange",
    "PowerNorms",
    "Reach",
    "Spectrum",
    "ar1",
    "ar1_autocovariances",
    "arfima",
    "arfima_autocovariances",
    "autocorrelation_norms",
    "channel_information",
    "convergence",
    "dfa",
    "diagnose",
    "elman_bptt",
    "fgn_autocovariances",
    "find_layers",
    "fluctuations",
    "fractional_gaussian_noise",
    "gate_values",
    "gaussian_information",
    "gaussian_process",
    "gph",
    "html_report",
    "input_reach",
    "layer_bptt",
    "layer_costs",
    "layer_figures",
    "layer_inputs",
    "linear_capacity",
    "local_whittle",
    "measure_gates",
    "memory_capacity",
    "memory_range",
    "power_norms",
    "save_figures",
    "spectra",
    "spectrum",
    "state_reach",
    "white_noise",
    "write_report",
]
