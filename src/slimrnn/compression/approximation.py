"""The member of a family that is nearest to a matrix in the weighted norm.

Low rank, with the gates sharing R (tied) or each for itself, has a closed form: with Aᵀ W B = P Σ Qᵀ it is
Ŵ = A⁻ᵀ P_r P_rᵀ Aᵀ W, whose error is the sum of the σ² left out; B is not inverted. Any other family starts from its
member nearest in the Frobenius norm, and L-BFGS goes down from there, so that it is never worse than that.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slimrnn.compression.weighting import Weighting
from slimrnn.structures import Dense, LowRank, Structure, Sum
from slimrnn.structures.base import Shape, StructuredMap
from slimrnn.structures.sum import SumMap

STEPS = 60  # of L-BFGS
Pair = tuple[Tensor, Tensor]


class Approximator:
    """Of one matrix, with what its approximations share."""

    def __init__(self, weighting: Weighting, shape: Shape, weight_norm: bool = False) -> None:
        self.weighting, self.weight_norm = weighting, weight_norm
        self.shape = Shape(shape.out_size, shape.in_size, shape.gates, dtype=torch.float64)
        self._decomposed: Pair | None = None  # P (M, k) and the σ² of all gates together
        self._of_gates: list[tuple[Weighting, Pair]] | None = None
        self._fits: dict[Structure, tuple[float, StructuredMap]] = {}

    def build(self, spec: Structure, device: str = "cpu") -> StructuredMap:
        """A map of this shape, in float64."""
        shape = self.shape
        options = {"weight_norm": self.weight_norm, "dtype": torch.float64, "device": device}
        return spec.build(shape.out_size, shape.in_size, shape.gates, **options)  # type: ignore[arg-type]

    def error(self, spec: Structure) -> float:
        """Of the nearest member."""
        if isinstance(spec, Dense):
            return 0.0
        if isinstance(spec, LowRank):
            tied = spec.tied
            return float(self._together[1][spec.rank :].sum()) if tied else self.weighting.error(self._low_rank(spec))
        return self._fit(spec)[0]

    def fitted(self, spec: Structure) -> StructuredMap:
        """The nearest member, in float64."""
        return self._fit(spec)[1]

    def _fit(self, spec: Structure) -> tuple[float, StructuredMap]:
        if spec not in self._fits:
            self._fits[spec] = self._fit_anew(spec)
        return self._fits[spec]

    def _fit_anew(self, spec: Structure) -> tuple[float, StructuredMap]:
        target, gates = self.weighting.target, self.shape.gates
        if isinstance(spec, LowRank):
            matrix = self._low_rank(spec)
            map = self.build(spec).nearest_(matrix.unflatten(0, (gates, -1)))  # balances the factors
        elif isinstance(spec, Dense):
            map = self.build(spec).nearest_(target.unflatten(0, (gates, -1)))
        else:
            map = self._descended(spec, self.build(spec).nearest_(target.unflatten(0, (gates, -1))))
        return self._error_of(map), map

    def _error_of(self, map: StructuredMap) -> float:
        return self.weighting.error(map.dense().detach().flatten(0, 1))

    # --- low rank ---------------------------------------------------------------------------------------

    @property
    def _together(self) -> Pair:
        if self._decomposed is None:
            self._decomposed = _decomposed(self.weighting)
        return self._decomposed

    @property
    def _apart(self) -> list[tuple[Weighting, Pair]]:
        if self._of_gates is None:
            parts = [self.weighting.of_gate(gate) for gate in range(self.shape.gates)]
            self._of_gates = [(part, _decomposed(part)) for part in parts]
        return self._of_gates

    def _low_rank(self, spec: LowRank) -> Tensor:
        parts = [(self.weighting, self._together)] if spec.tied else self._apart
        return torch.cat([_projected(weighting, p, spec.rank) for weighting, (p, _) in parts])

    # --- any other family -------------------------------------------------------------------------------

    def _descended(self, spec: Structure, nearest: StructuredMap) -> StructuredMap:
        """The best of what L-BFGS reaches from the nearest member and, of a sum with a low-rank part, from that part's
        own nearest member."""
        starts = [nearest]
        if isinstance(spec, Sum) and isinstance(nearest, SumMap) and self.weighting.left is not None:
            starts += self._from_low_rank(spec)
        for start in starts:
            _descend(start, self.weighting)
        return min(starts, key=self._error_of)

    def _from_low_rank(self, spec: Sum) -> list[StructuredMap]:
        gates, target = self.shape.gates, self.weighting.target
        for k, part in enumerate(spec.parts):
            if isinstance(part, LowRank) and len(spec.parts) == 2:
                map, matrix = self.build(spec), self._low_rank(part)
                assert isinstance(map, SumMap)
                own, other = map.parts[k], map.parts[1 - k]
                assert isinstance(own, StructuredMap)
                assert isinstance(other, StructuredMap)
                own.nearest_(matrix.unflatten(0, (gates, -1)))
                other.nearest_((target - matrix).unflatten(0, (gates, -1)))
                return [map]
        return []


def _decomposed(weighting: Weighting) -> Pair:
    p, s, _ = torch.linalg.svd(weighting.whitened(weighting.target), full_matrices=False)
    return p, s.square()


def _projected(weighting: Weighting, p: Tensor, rank: int) -> Tensor:
    """A⁻ᵀ P_r P_rᵀ Aᵀ W"""
    kept = p[:, :rank]
    return weighting.unwhitened_rows(kept) @ (kept.mT @ weighting.whitened_rows(weighting.target))


def _descend(map: StructuredMap, weighting: Weighting) -> None:
    """L-BFGS on the weighted error; the best that was met stays."""
    parameters = [p for p in map.parameters() if p.requires_grad]
    if not parameters:
        return
    scale = weighting.whole or 1.0
    best = [float("inf"), [p.detach().clone() for p in parameters]]
    optimizer = torch.optim.LBFGS(parameters, max_iter=STEPS, history_size=10, line_search_fn="strong_wolfe")

    def closure() -> float:
        optimizer.zero_grad()
        dense = map.dense()
        matrix = dense.flatten(0, 1)
        slope = weighting.slope(matrix.detach())
        error = float(((matrix.detach() - weighting.target) * slope).sum()) / scale
        if error < best[0]:  # type: ignore[operator]
            best[:] = [error, [p.detach().clone() for p in parameters]]
        matrix.backward(2 * slope / scale)
        return error

    with torch.enable_grad():
        optimizer.step(closure)
    with torch.no_grad():
        for p, kept in zip(parameters, best[1], strict=True):  # type: ignore[call-overload]
            p.copy_(kept)
