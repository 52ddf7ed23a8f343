"""compress: a trained model to a budget."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from slimrnn._checks import check_count, check_number
from slimrnn.compression.budget import Budget, read_budget
from slimrnn.compression.choosing import choose_by_score
from slimrnn.compression.families import Structures
from slimrnn.compression.fine_tuning import fine_tune_
from slimrnn.compression.losses import LOGITS, Loss, batches_of, check_loss, distance, output_of, probe
from slimrnn.compression.plan import Plan, cost_of
from slimrnn.compression.rates import peak_rate
from slimrnn.compression.replace import replace as with_our_layers
from slimrnn.compression.replacements import replacements
from slimrnn.compression.report import CompressionReport
from slimrnn.compression.reporting import Score, report_of
from slimrnn.structures import Structure

SEED = 0  # of the labels and directions that are drawn
SCORED = 50  # batches
HALVINGS = 8  # of the search for a target


@dataclass(frozen=True, eq=False)
class Compressed:
    """A model that was compressed, and what was done."""

    model: nn.Module
    report: CompressionReport


def compress(
    model: nn.Module,
    budget: float | str | None = None,
    *,
    data: Iterable[Any] | None = None,
    loss: Loss | str | None = None,
    structures: Structures | str | Structure | None = None,
    keep: Sequence[str] | str | None = None,
    fine_tune: int = 0,
    target: float | None = None,
) -> Compressed:
    """min Σ ‖G^½ (W − Ŵ) C^½‖² over the matrices of all recurrent layers, within the budget.

    The model is any with recurrent layers of ours or of torch.nn; it is not changed.

    budget -- of the recurrent layers: 0.2 or "20%" of their parameters, 50_000 parameters, "200 KB", "1.2M macs" (per
    step);
    data -- batches to weight by: tensors; tuples, whose first is the input; or dicts of arguments. Without data, C and
    G are identities and the approximation is the nearest in the Frobenius norm;
    loss -- loss(model, batch), a number to be made small; or "logits", if the model's output is logits of classes along
    its last axis; without one, G comes from the output's own derivatives;
    structures -- the candidates: names such as "tied-low-rank", "block-diagonal", "kronecker+tied-low-rank", or
    structures such as LowRank(24); asked for by name, they may be slower than what they replace;
    keep -- patterns of layers or matrices to leave alone: "encoder.*", "*.input";
    fine_tune -- updates on the data, by the loss, or without a function for it by distillation from the model itself;
    target -- instead of a budget: find the smallest whose score is at most so much worse, 0.02 for 2 %, of the loss;
    without a function for it, the distance of the outputs, in nats of logits or as a share of their power."""
    wanted = _check(budget, data, loss, fine_tune, target)
    teacher = ours(model)
    plan = Plan.of(teacher, structures, keep)
    if wanted is not None:
        plan.check(wanted)
    batches = None if data is None else batches_of(data)
    if batches is not None:
        _check_data(teacher, batches, loss)
    plan = plan.measured(batches, probe(loss, torch.Generator().manual_seed(SEED)))
    score = None if batches is None else _score(teacher, batches, loss)
    if wanted is None:
        assert score is not None and target is not None  # noqa: PT018 -- `_check` has seen to it
        wanted = _smallest(plan, score, target, relative=callable(loss))
    plan, chosen, small = choose_by_score(plan, wanted, score)
    tuned = None
    right_after = None if score is None else score(small)
    if fine_tune:
        assert batches is not None  # `_check` has seen to it
        assert score is not None
        rate = peak_rate(cost_of(small, "parameters") / plan.whole("parameters"))
        tuned = fine_tune_(small, teacher, batches, loss, fine_tune, score, rate)
    name = "loss" if callable(loss) else "nats from the original" if loss == LOGITS else "squared error"
    report = report_of(model, plan, wanted, chosen, small, score, name)
    if tuned is not None:
        final = replace(report.after, score=tuned.score)
        report = replace(
            report, after=final, right_after=right_after, updates=tuned.updates, best_update=tuned.best_update
        )
    return Compressed(small, report)


def ours(model: nn.Module) -> nn.Module:
    """A copy in which torch's recurrent layers are replaced by ours."""
    twin = copy.deepcopy(model)
    return with_our_layers(twin) if any(one.replaced for one in replacements(twin).layers) else twin


def _check(
    budget: float | str | None, data: object, loss: Loss | str | None, fine_tune: int, target: float | None
) -> Budget | None:
    check_loss(loss)
    if (budget is None) == (target is None):
        raise ValueError(f"expected a budget or a target, got {'neither' if budget is None else 'both'}")
    if fine_tune != 0:
        check_count("fine_tune", fine_tune)
    if target is not None:
        check_number("target", target)
        if target < 0:
            raise ValueError(f"expected target to be at least 0, got {target}")
    for name, value in (("fine_tune", fine_tune or None), ("target", target), ("loss", loss)):
        if value is not None and data is None:
            raise ValueError(f"expected data with {name}, got none")
    return None if budget is None else read_budget(budget)


def _check_data(model: nn.Module, data: Iterable[Any], loss: Loss | str | None) -> None:
    """Run the first batch."""
    was_training = model.training
    try:
        with torch.no_grad():
            batch = next(iter(data))
            value = loss(model.eval(), batch) if callable(loss) else output_of(model.eval(), batch)
    except (TypeError, ValueError, RuntimeError, LookupError, AttributeError) as error:
        raise ValueError(f"expected data that the model takes, got a batch with which it says: {error}") from error
    finally:
        model.train(was_training)
    if not isinstance(value, Tensor) or (callable(loss) and value.numel() != 1):
        got = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"expected loss(model, batch) to return one number, got {got}")
    if loss == LOGITS and (value.dim() < 2 or not value.is_floating_point()):
        raise ValueError(f"expected logits of shape (..., classes), got {tuple(value.shape)} of {value.dtype}")


def _score(teacher: nn.Module, data: Iterable[Any], loss: Loss | str | None) -> Score:
    """The mean loss over the first batches; without a function for it, the distance from the teacher's outputs."""

    @torch.no_grad()
    def score(model: nn.Module) -> float:
        was_training, values = model.training, []
        model.eval()
        teacher.eval()
        for batch in itertools.islice(data, SCORED):
            if callable(loss):
                values.append(float(loss(model, batch)))
            else:
                values.append(float(distance(output_of(model, batch), output_of(teacher, batch), loss)))
        model.train(was_training)
        return math.fsum(values) / len(values)

    return score


def _smallest(plan: Plan, score: Score, target: float, relative: bool) -> Budget:
    """By bisection of the logarithm of the share, as the score is taken to fall with it."""
    first = score(plan.model)
    most = first + target * abs(first) if relative else first + target
    low, high = math.log(plan.smallest("parameters") / plan.whole("parameters")), 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        small = plan.build(plan.choose(Budget(math.exp(middle), is_share=True)))
        low, high = (low, middle) if score(small) <= most else (middle, high)
    return Budget(math.exp(high), is_share=True)
