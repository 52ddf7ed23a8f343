"""slimrnn: recurrent networks with long memories and few parameters.

A layer is any cell x any structure of the recurrent matrix:

    >>> from slimrnn import GRU, LowRank, Diagonal
    >>> rnn = GRU(1, 128, structure=LowRank(24) + Diagonal(), batch_first=True)
"""

# ruff: noqa: E402 -- before torch is imported, which takes seconds
from slimrnn._interrupts import take_over

take_over()

from slimrnn.cells import Leaky
from slimrnn.layers import (
    GRU,
    LSTM,
    RNN,
    ContextSwitching,
    Deep,
    Highway,
    OutputRecurrent,
    ReadOut,
    hidden_size_for,
    summary,
)
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

__version__ = "0.1.0"

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Antisymmetric",
    "BlockDiagonal",
    "Circulant",
    "ComplexDiagonal",
    "ContextSwitching",
    "Deep",
    "Dense",
    "Diagonal",
    "FullUnitary",
    "Highway",
    "Householder",
    "Kronecker",
    "Leaky",
    "Legendre",
    "LowRank",
    "OutputRecurrent",
    "Permutation",
    "Product",
    "ReadOut",
    "Shift",
    "Shuffle",
    "Sparse",
    "Structure",
    "Sum",
    "UnitaryProduct",
    "hidden_size_for",
    "summary",
]
