"""Structures of matrices: one file each. A spec (`LowRank(24)`) builds a map that holds the parameters."""

from slimrnn.structures.antisymmetric import Antisymmetric
from slimrnn.structures.base import Structure, StructuredMap
from slimrnn.structures.block_diagonal import BlockDiagonal
from slimrnn.structures.circulant import Circulant
from slimrnn.structures.complex_diagonal import ComplexDiagonal
from slimrnn.structures.dense import Dense
from slimrnn.structures.diagonal import Diagonal
from slimrnn.structures.householder import Householder
from slimrnn.structures.kronecker import Kronecker
from slimrnn.structures.legendre import Legendre
from slimrnn.structures.low_rank import LowRank
from slimrnn.structures.permutation import Permutation
from slimrnn.structures.product import Product
from slimrnn.structures.shift import Shift
from slimrnn.structures.shuffle import Shuffle
from slimrnn.structures.sparse import Sparse
from slimrnn.structures.sum import Sum
from slimrnn.structures.unitary import FullUnitary
from slimrnn.structures.unitary_product import UnitaryProduct

__all__ = [
    "Antisymmetric",
    "BlockDiagonal",
    "Circulant",
    "ComplexDiagonal",
    "Dense",
    "Diagonal",
    "FullUnitary",
    "Householder",
    "Kronecker",
    "Legendre",
    "LowRank",
    "Permutation",
    "Product",
    "Shift",
    "Shuffle",
    "Sparse",
    "Structure",
    "StructuredMap",
    "Sum",
    "UnitaryProduct",
]
