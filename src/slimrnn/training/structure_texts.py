"""The text of a structure, which `structure_names` reads."""

from __future__ import annotations

from collections.abc import Sequence

from slimrnn import BlockDiagonal, Dense, Diagonal, Kronecker, LowRank, Sparse, Sum
from slimrnn.errors import ConfigError
from slimrnn.structures import Structure


def structure_text(spec: Structure | Sequence[Structure]) -> str:
    """Of one structure, or of one for each layer and direction."""
    if not isinstance(spec, Structure):
        return ", ".join(map(structure_text, spec))
    match spec:
        case Dense():
            return "dense"
        case Diagonal():
            return "diagonal"
        case LowRank(rank, tied):
            return f"{'tied-' if tied else ''}low-rank({rank})"
        case BlockDiagonal(blocks):
            return f"block-diagonal({blocks})"
        case Kronecker(trainable=True):
            return f"kronecker({','.join(str(p) if p == q else f'{p}x{q}' for p, q in spec.factors)})"
        case Sparse(mask=None):
            return f"sparse({spec.density}{'' if spec.seed is None else f',{spec.seed}'})"
        case Sum():
            return "+".join(map(structure_text, spec.parts))
    raise ConfigError(f"expected a structure that settings can name, got {spec!r}")
