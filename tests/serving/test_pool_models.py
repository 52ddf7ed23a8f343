"""Models with users' own code in them: a pool runs it or refuses it, and never passes over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from registry import needs_library, numbers
from slimrnn import GRU, ReadOut, StreamPool
from slimrnn.layers import RecurrentStack
from slimrnn.layers.affine import Affine

pytestmark = needs_library


class DoubledLinear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class DoubledAffine(Affine):
    def product(self, x: Tensor) -> Tensor:
        return 2 * super().product(x)


class DoubledReadOut(ReadOut):
    def forward(self, output: Tensor, lengths: Any = None) -> Tensor:
        return 2 * super().forward(output, lengths)


class Backwards(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        for part in reversed(self):
            x = part(x)
        return x


class ListWithForward(nn.ModuleList):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Halved(nn.Dropout):
    def forward(self, x: Tensor) -> Tensor:
        return x / 2


class Shifted(nn.Identity):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class LoudGRU(GRU):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        y, state = super().forward(*args, **kwargs)
        return 2 * y, state


class SteppingGRU(GRU):
    def step(self, *args: Any, **kwargs: Any) -> Any:
        y, state = super().step(*args, **kwargs)
        return 2 * y, state


MODELS: list[Callable[[GRU], Any]] = [
    lambda rnn: [rnn, DoubledLinear(4, 4)],
    lambda rnn: [rnn, DoubledAffine(4, 4)],
    lambda rnn: [rnn, DoubledReadOut(rnn, 4)],
    lambda rnn: [rnn, Backwards(nn.Linear(4, 4), nn.Linear(4, 4))],
    lambda rnn: ListWithForward([rnn, nn.Linear(4, 4)]),
    lambda rnn: [rnn, Halved(), nn.Linear(4, 4)],
    lambda rnn: [rnn, nn.Sequential(nn.Linear(4, 4), Shifted())],
    lambda _: LoudGRU(2, 4),
    lambda _: nn.Sequential(SteppingGRU(2, 4)),
]


@pytest.mark.parametrize("make", MODELS)
def test_methods_of_ones_own_are_refused(make: Callable[[GRU], Any]) -> None:
    with pytest.raises(TypeError, match=r"expected \w+ with its own (forward|step|product), got \w+ with another"):
        StreamPool(make(GRU(2, 4)), capacity=1, threads=1)


def test_methods_of_an_instance_are_refused() -> None:
    rnn, linear = GRU(2, 4), nn.Linear(4, 4)
    linear.__dict__["forward"] = torch.relu
    with pytest.raises(TypeError, match="expected Linear with its own forward, got Linear with another"):
        StreamPool([rnn, linear], capacity=1, threads=1)
    rnn.layers[0].__dict__["step"] = torch.relu
    with pytest.raises(TypeError, match="expected RecurrentLayer with its own step"):
        StreamPool(rnn, capacity=1, threads=1)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at", ["", "0", "0.layers.0", "1", "1.0", "1.1", "1.2"])
def test_hooks_are_refused(at: str, before: bool) -> None:
    model = nn.Sequential(GRU(2, 4), nn.Sequential(nn.Dropout(), nn.Linear(4, 4), nn.ReLU()))
    module = model.get_submodule(at)
    register = module.register_forward_pre_hook if before else module.register_forward_hook
    hook = register(lambda *_: None)
    for given in (model, list(model)) if at else (model,):
        with pytest.raises(TypeError, match=f"expected modules without hooks, got {type(module).__name__} with some"):
            StreamPool(given, capacity=1, threads=1)
    hook.remove()
    StreamPool(model, capacity=1, threads=1).shutdown()


class NamedLinear(nn.Linear):
    """With another constructor, and nothing else."""

    def __init__(self, name: str) -> None:
        super().__init__(4, 4, dtype=torch.float64)
        self.name = name


class NamedGRU(GRU):
    pass


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


@torch.no_grad()
def wanted_of(rnn: RecurrentStack, others: nn.Module, x_TI: Tensor) -> Tensor:
    found: Tensor = others(rnn(x_TI)[0])
    return found


@torch.no_grad()
def test_subclasses_activations_and_computed_weights_are_taken() -> None:
    rnn, linear = NamedGRU(2, 4).double(), NamedLinear("a")
    parametrizations.weight_norm(linear)
    prune.l1_unstructured(rnn.layers[0].recurrent, "weight", 0.5)
    prune.random_unstructured(rnn.cell, "bias", 0.5)
    for parameter in rnn.parameters():
        parameter.copy_(numbers(*parameter.shape))  # so that what was computed is of before
    others, x = nn.Sequential(linear, Doubled()), numbers(3, 2)
    with StreamPool([rnn, others], capacity=1, threads=1) as pool:
        stream = pool.open()
        found = torch.stack([pool.step(stream, x_t) for x_t in x])
    torch.testing.assert_close(found, wanted_of(rnn, others, x), rtol=1e-12, atol=1e-12)
