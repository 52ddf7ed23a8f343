"""The report of a compression: what was chosen, and what can be measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import nn

from slimrnn.compression.budget import Budget, Unit
from slimrnn.compression.candidates import Candidate, Matrix
from slimrnn.compression.plan import Plan, cost_of
from slimrnn.compression.report import CompressionReport, Costs, MatrixReport, Point
from slimrnn.compression.timing import Times, times_of

UNITS: tuple[Unit, ...] = ("parameters", "bytes", "macs")
SHARES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.025)  # of the Pareto figure
Score = Callable[[nn.Module], float]


def report_of(
    original: nn.Module,
    plan: Plan,
    budget: Budget,
    chosen: Sequence[Candidate],
    small: nn.Module,
    score: Score | None,
    score_name: str,
) -> CompressionReport:
    """Right after the compression. Times are those of `original`; with a score, other budgets are tried, too."""
    whole = plan.whole("parameters")
    shares = [] if score is None else [share for share in SHARES if share * whole >= plan.smallest("parameters")]
    nets = [plan.build(plan.choose(Budget(share, is_share=True))) for share in shares]
    before, after, *rest = times_of([original, small, *nets])
    first, last, *scores = (None if score is None else score(net) for net in (plan.model, small, *nets))
    points = [
        Point(share, cost_of(net, "parameters"), times.sequence, value)
        for share, net, times, value in zip(shares, nets, rest, scores, strict=True)
    ]
    weighted = plan.matrices[0].approximated.weighting.left is not None
    return CompressionReport(
        budget=f"budget: {budget}",
        weighted_by="weighted by the data" if weighted else "in the Frobenius norm, without data",
        score_name=score_name,
        matrices=tuple(_of_matrix(m, c) for m, c in zip(plan.matrices, chosen, strict=True)),
        before=_costs(plan.model, before, first),
        after=_costs(small, after, last),
        left=plan.left,
        points=tuple(points),
    )


def _costs(model: nn.Module, times: Times, score: float | None) -> Costs:
    parameters, size, macs = (cost_of(model, unit) for unit in UNITS)
    return Costs(parameters, size, macs, times.step, times.sequence, score)


def _of_matrix(matrix: Matrix, chosen: Candidate) -> MatrixReport:
    target, present = matrix.approximated.weighting.target, matrix.present
    lost, plain = 0.0, 0.0
    if not chosen.as_it_is:
        found = matrix.approximated.fitted(chosen.spec).dense().detach().flatten(0, 1)
        lost = chosen.error / matrix.whole if matrix.whole else 0.0
        plain = float((target - found).norm() / target.norm().clamp_min(1e-30))
    return MatrixReport(
        name=matrix.site.name,
        before=repr(present.spec),
        structure=repr(chosen.spec),
        parameters_before=present.parameters,
        parameters=chosen.parameters,
        macs_before=present.macs,
        macs=chosen.macs,
        weighted_error=math.sqrt(lost),
        energy_kept=1 - lost,
        plain_error=plain,
    )
