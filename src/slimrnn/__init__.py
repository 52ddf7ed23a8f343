"""slimrnn: recurrent networks with long memories and few parameters.

A layer is any cell x any structure of the recurrent matrix:

    >>> from slimrnn import GRU, LowRank, Diagonal
    >>> rnn = GRU(1, 128, structure=LowRank(24) + Diagonal(), batch_first=True)
"""

# ruff: noqa: E402 -- before torch is imported, which takes seconds
from slimrnn._collection import pause_while_importing
from slimrnn._interrupts import take_over

take_over()
pause_while_importing()

from typing import TYPE_CHECKING, Any

from slimrnn._version import __version__ as __version__
from slimrnn.cells import Cell, Chrono, Leaky, UniformGate
from slimrnn.compression import compress, replace
from slimrnn.exporting import export, load, quantize, save
from slimrnn.layers import (
    GRU,
    LEM,
    LSTM,
    MGU,
    RNN,
    SLSTM,
    AntisymmetricRNN,
    ContextSwitching,
    CoRNN,
    Deep,
    DeepTransitionRNN,
    FastGRNN,
    Highway,
    IndRNN,
    LayerNormGRU,
    LayerNormLSTM,
    LipschitzRNN,
    MinGRU,
    MinLSTM,
    OutputRecurrent,
    ReadOut,
    Recurrent,
    UnICORNN,
    hidden_size_for,
    layer_of,
    parameter_groups,
    summary,
)
from slimrnn.serving import StreamPool
from slimrnn.structures import (
    Antisymmetric,
    BlockDiagonal,
    Circulant,
    ComplexDiagonal,
    Dense,
    Diagonal,
    FullUnitary,
    Householder,
    Kronecker,
    Legendre,
    LowRank,
    Permutation,
    Product,
    Shift,
    Shuffle,
    Sparse,
    Structure,
    Sum,
    UnitaryProduct,
)

__all__ = [
    "GRU",
    "LEM",
    "LSTM",
    "MGU",
    "RNN",
    "SLSTM",
    "Antisymmetric",
    "AntisymmetricRNN",
    "BlockDiagonal",
    "Cell",
    "Chrono",
    "Circulant",
    "CoRNN",
    "ComplexDiagonal",
    "ContextSwitching",
    "Deep",
    "DeepTransitionRNN",
    "Dense",
    "Diagonal",
    "FastGRNN",
    "FullUnitary",
    "Highway",
    "Householder",
    "IndRNN",
    "Kronecker",
    "LayerNormGRU",
    "LayerNormLSTM",
    "Leaky",
    "Legendre",
    "LipschitzRNN",
    "LowRank",
    "MinGRU",
    "MinLSTM",
    "OutputRecurrent",
    "Permutation",
    "Product",
    "ReadOut",
    "Recurrent",
    "Shift",
    "Shuffle",
    "Sparse",
    "StreamPool",
    "Structure",
    "Sum",
    "UnICORNN",
    "UniformGate",
    "UnitaryProduct",
    "compress",
    "export",
    "hidden_size_for",
    "layer_of",
    "load",
    "parameter_groups",
    "quantize",
    "replace",
    "save",
    "summary",
]

if not TYPE_CHECKING:  # where any attribute would be taken for granted

    def __getattr__(name: str) -> Any:
        """`slimrnn.estimators` needs scikit-learn, which is imported with it when it is asked for."""
        if name != "estimators":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module("slimrnn.estimators")
