"""Every structure and every cell, listed once; the suites iterate over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from slimrnn import (
    GRU,
    LEM,
    LSTM,
    MGU,
    RNN,
    SLSTM,
    Antisymmetric,
    AntisymmetricRNN,
    BlockDiagonal,
    Circulant,
    ComplexDiagonal,
    CoRNN,
    DeepTransitionRNN,
    Dense,
    Diagonal,
    FastGRNN,
    FullUnitary,
    Householder,
    IndRNN,
    Kronecker,
    LayerNormGRU,
    LayerNormLSTM,
    Leaky,
    Legendre,
    LipschitzRNN,
    LowRank,
    MinGRU,
    MinLSTM,
    Permutation,
    Shift,
    Shuffle,
    Sparse,
    Structure,
    UnICORNN,
    UnitaryProduct,
)
from slimrnn.layers import RecurrentStack
from slimrnn.ops.library import native_library

SIZE = 12  # divisible by 2, 3 and 4, and no power of two

STRUCTURES: dict[str, Structure] = {
    "dense": Dense(),
    "diagonal": Diagonal(),
    "block": BlockDiagonal(3),
    "low-rank": LowRank(2),
    "low-rank-tied": LowRank(2, tied=True),
    "low-rank+diagonal": LowRank(2) + Diagonal(),
    "tied+diagonal": LowRank(2, tied=True) + Diagonal(),
    "block+low-rank": BlockDiagonal(3) + LowRank(1),
    "kronecker-2": Kronecker([3, 4]),
    "kronecker-3": Kronecker([2, 3, 2]),
    "kronecker-pairs": Kronecker([(2, 3), (6, 4)]),
    "kronecker-fixed": Kronecker([2, 6], trainable=False),
    "full-unitary": FullUnitary(),
    "unitary-product": UnitaryProduct(),
    "sparse": Sparse(0.25),
    "sparse-mask": Sparse(mask=[[(i + 2 * j) % 5 == 1 for j in range(SIZE)] for i in range(SIZE)]),
    "permutation": Permutation(seed=3),
    "shift": Shift(2),
    "monarch": BlockDiagonal(3) @ Shuffle(3) @ BlockDiagonal(3),
    "doped-kronecker": Kronecker([3, 4]) + Sparse(0.1),
    "low-rank@permutation+diagonal": LowRank(2) @ Permutation(seed=1) + Diagonal(),
    "circulant": Circulant(),
    "householder": Householder(4),
    "antisymmetric": Antisymmetric(0.1),
    "legendre": Legendre(20),
    "complex-diagonal": ComplexDiagonal(0.4, 0.9),
    "householder@diagonal@circulant": Householder(3) @ Diagonal() @ Circulant(),
    "sum@tied": (Diagonal() + LowRank(3, tied=True)) @ (LowRank(2) + Sparse(0.1) @ Shift(1)),
}

RECTANGULAR: dict[str, Structure] = {  # 12 x 6
    "dense": Dense(),
    "block": BlockDiagonal(3),
    "low-rank": LowRank(2),
    "low-rank-tied": LowRank(2, tied=True),
    "kronecker-2": Kronecker([(4, 2), 3]),
    "kronecker-3": Kronecker([(2, 3), (3, 1), 2]),
    "sum": LowRank(1) + BlockDiagonal(2),
    "sparse": Sparse(0.3),
    "product": Shift(1) @ Permutation(seed=1) @ LowRank(2),
}

# Of these `nearest` finds a local optimum from where it starts: another start may not find a member again.
LOCAL = ("unitary-product", "monarch", "doped-kronecker", "householder", "householder@diagonal@circulant", "sum@tied")
# One matrix, without parameters.
FIXED = ("permutation", "shift", "legendre")


@dataclass(frozen=True)
class CellCase:
    """A layer class with the options that choose its cell."""

    layer: type[RecurrentStack]
    options: dict[str, Any] = field(default_factory=dict)
    complex: bool = False

    def build(self, input_size: int, hidden_size: int, *args: Any, **options: Any) -> RecurrentStack:
        make: Any = self.layer
        built: RecurrentStack = make(
            input_size, hidden_size, *args, **{"dtype": torch.float64, **self.options, **options}
        )
        return built


TORCH_CELLS: dict[str, CellCase] = {  # and relatives of these
    "tanh": CellCase(RNN),
    "relu": CellCase(RNN, {"nonlinearity": "relu"}),
    "identity": CellCase(RNN, {"nonlinearity": "identity"}),
    "identity-complex": CellCase(RNN, {"nonlinearity": "identity", "complex": True}, complex=True),
    "modrelu": CellCase(RNN, {"nonlinearity": "modrelu"}, complex=True),
    "modrelu-real": CellCase(RNN, {"nonlinearity": "modrelu", "complex": False}),
    "lstm": CellCase(LSTM, {"forget_bias": 1.0}),
    "lstm-peephole": CellCase(LSTM, {"peephole": True}),
    "gru-after": CellCase(GRU, {"update_bias": 0.5}),
    "gru-before": CellCase(GRU, {"reset": "before", "update_bias": 1.0}),
    "tanh-leaky": CellCase(RNN, {"leak": Leaky(time_constants=(1, 10), learned=True)}),
    "lstm-leaky": CellCase(LSTM, {"leak": Leaky(0.4, learned=True)}),
    "gru-leaky-deep": CellCase(GRU, {"leak": 0.3, "transition_depth": 2}),
    "modrelu-leaky-deep": CellCase(
        RNN, {"nonlinearity": "modrelu", "leak": Leaky(0.5, learned=True), "transition_depth": 2}, complex=True
    ),
}

ZOO: dict[str, CellCase] = {
    "mgu": CellCase(MGU, {"forget_bias": -1.0}),
    "lem": CellCase(LEM, {"dt": 0.7}),
    "cornn": CellCase(CoRNN, {"gamma": 0.7, "epsilon": 1.3, "dt": 0.2}),
    "unicornn": CellCase(UnICORNN, {"alpha": 0.7, "dt": 0.4}),
    "fastgrnn": CellCase(FastGRNN),
    "slstm": CellCase(SLSTM, {"forget_bias": 1.0}),
    "slstm-exp": CellCase(SLSTM, {"forget": "exp"}),
    "mingru": CellCase(MinGRU, {"update_bias": -1.0}),
    "minlstm": CellCase(MinLSTM, {"forget_bias": 1.0}),
    "layer-norm-lstm": CellCase(LayerNormLSTM, {"forget_bias": 1.0}),
    "layer-norm-gru": CellCase(LayerNormGRU, {"update_bias": 1.0}),
    "antisymmetric": CellCase(AntisymmetricRNN, {"epsilon": 0.4, "gamma": 0.2}),
    "lipschitz": CellCase(LipschitzRNN, {"epsilon": 0.4, "gamma": 0.2}),
    "indrnn": CellCase(IndRNN),
    "deep-transition": CellCase(DeepTransitionRNN, {"depth": 3}),
}

CELLS = TORCH_CELLS | ZOO


def fits(structure: Structure, complex: bool) -> bool:
    """Two structures need a complex state."""
    return complex or not isinstance(structure, UnitaryProduct | ComplexDiagonal)


FIELDS = [(s, c) for s in STRUCTURES for c in (False, True) if fits(STRUCTURES[s], c)]

# A cell is a program, and all that a structure sees of it are the products that it asks for: of one vector or of
# several, of all matrices or of some, of a state before or after the step, complex or not. One cell for each way has
# every structure, the others a few.
EVERY_STRUCTURE = ("tanh", "modrelu", "lstm", "gru-after", "gru-before", "lem")
FEW_STRUCTURES = ("dense", "block", "low-rank+diagonal", "kronecker-3")
PAIRS = [
    (c, s)
    for c in CELLS
    for s in STRUCTURES
    if fits(STRUCTURES[s], CELLS[c].complex) and (c in EVERY_STRUCTURE or s in FEW_STRUCTURES)
]

# Every cell with one structure, every structure with a gated real and a complex cell: for what does not depend on the
# pair. GRU "before" asks for its products in two ranges of gates, of which the second sees another vector.
FEW_PAIRS = [(c, s) for c, s in PAIRS if s == "low-rank+diagonal" or c in ("gru-before", "modrelu")]

# All that torch's tracers and compilers see of a cell is one operator and its operands: one state or several, own
# parameters or none, real or complex, several transitions in a step, generated C++ or bytecode.
FEW_CELLS = ("tanh", "modrelu", "lstm-peephole", "gru-after", "modrelu-leaky-deep", "lem", "slstm", "layer-norm-gru")

needs_library = pytest.mark.skipif(native_library() is None, reason="slimrnn was installed without its native library")
BACKENDS = ["reference", pytest.param("native", marks=needs_library)]


def randomise_(stack: RecurrentStack, scale: float = 0.3) -> RecurrentStack:
    """Move every parameter off its initial value: zero biases and peepholes hide mistakes."""
    with torch.no_grad():
        for p in stack.parameters():
            if p.requires_grad:
                p.add_(scale * torch.randn_like(p))
    return stack


def numbers(*sizes: int, complex: bool = False) -> torch.Tensor:
    """Gaussian numbers in double precision."""
    return torch.randn(sizes, dtype=torch.complex128 if complex else torch.float64)
