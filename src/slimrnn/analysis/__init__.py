"""Free functions that look at layers and trajectories from outside."""

from slimrnn.analysis.bptt import BPTT, elman_bptt, layer_bptt
from slimrnn.analysis.capacity import (
    Capacity,
    channel_information,
    gaussian_information,
    linear_capacity,
    memory_capacity,
)
from slimrnn.analysis.convergence import Convergence, convergence
from slimrnn.analysis.dependence import AutocorrelationNorms, autocorrelation_norms
from slimrnn.analysis.diagnosis import Diagnosis, diagnose
from slimrnn.analysis.figures import save_figures
from slimrnn.analysis.finding import Finding
from slimrnn.analysis.gates import GateActivity, gate_values, measure_gates
from slimrnn.analysis.input_reach import input_reach
from slimrnn.analysis.layer_diagnosis import LayerDiagnosis
from slimrnn.analysis.layer_inputs import LayerInput, layer_inputs
from slimrnn.analysis.layers import LayerView, find_layers
from slimrnn.analysis.long_memory import LongMemory, dfa, fluctuations, gph, local_whittle
from slimrnn.analysis.powers import PowerNorms, power_norms
from slimrnn.analysis.processes import (
    ar1,
    ar1_autocovariances,
    arfima,
    arfima_autocovariances,
    fgn_autocovariances,
    fractional_gaussian_noise,
    gaussian_process,
    white_noise,
)
from slimrnn.analysis.reach import Reach
from slimrnn.analysis.report import html_report, write_report
from slimrnn.analysis.spectrum import Spectrum, spectra, spectrum
from slimrnn.analysis.state_reach import state_reach
from slimrnn.analysis.structure import LayerCost, layer_costs
from slimrnn.analysis.theory import MemoryRange, memory_range

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
