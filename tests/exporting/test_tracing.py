"""torch.jit and torch.onnx's old exporter, which record one call: what they would fix without a word is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from slimrnn import GRU
from slimrnn.errors import ExportError
from slimrnn.exporting import freeze

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own
X = torch.randn(7, 3, 5)


class Around(nn.Module):
    """A user's model; what it passes on by name, it takes by position."""

    def __init__(self, rnn: Any, name: str | None = None) -> None:
        super().__init__()
        self.rnn, self.name = rnn, name

    def forward(self, x: Tensor, more: Tensor | None = None) -> Any:
        return self.rnn(x, **({} if self.name is None else {self.name: more}))[0]


class InSteps(Around):
    """One step of it."""

    def forward(self, x: Tensor, more: Tensor | None = None) -> Any:
        return self.rnn.step(x, more)[0]


@pytest.mark.parametrize(
    ("make", "example"),
    [
        (lambda: GRU(5, 8), (X,)),
        (lambda: GRU(5, 8, backend="reference"), (X, torch.zeros(1, 3, 8))),
        (lambda: Around(GRU(5, 8)), (X,)),
        (lambda: Around(GRU(5, 8, skip=3)), (X,)),
        (lambda: Around(GRU(5, 8, delays=(1, 2))), (X,)),
        (lambda: Around(freeze(GRU(5, 8))), (X,)),
        (lambda: InSteps(GRU(5, 8, backend="reference")), (X[0], torch.zeros(1, 3, 8))),
    ],
)
def test_the_old_onnx_exporter_is_answered(
    make: Callable[[], nn.Module], example: tuple[Tensor, ...], tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match=r"got dynamo=False.*: use slimrnn.export\(model, example, 'net.onnx'\), or"):
        torch.onnx.export(make().eval(), example, tmp_path / "net.onnx", dynamo=False)
    assert list(tmp_path.iterdir()) == []
    assert isinstance(torch.jit.trace(Around(GRU(5, 8)).eval(), (X,)), torch.jit.ScriptModule)  # nothing stays behind


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        (Around(GRU(5, 8, skip=3)), (), "without skip for torch.jit.trace.*step=True"),
        (Around(GRU(5, 8, skip=3), "resets"), (X[..., 0] > 0,), "no resets with delays or a skip .* or trace"),
        (Around(GRU(5, 8, delays=(2,)), "resets"), (X[..., 0] > 0,), "no resets with delays or a skip .* or trace"),
    ],
)
def test_traces_that_would_fix_the_length_or_the_resets_are_refused(
    model: nn.Module, more: tuple[Tensor, ...], message: str
) -> None:
    with pytest.raises(ExportError, match=message):
        torch.jit.trace(model.eval(), (X, *more))


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (Around(GRU(5, 8, num_layers=2, bidirectional=True), "lengths"), lambda t, b: (torch.randint(1, t + 1, (b,)),)),
        (Around(GRU(5, 8, delays=(1, 3, 2, 2)), "lengths"), lambda t, b: (torch.randint(1, t + 1, (b,)),)),
        (Around(GRU(5, 8, transition_depth=2), "resets"), lambda t, b: (torch.rand(t, b) < 0.3,)),
        (Around(GRU(5, 9, delays=(3,))), lambda t, b: ()),
    ],
)
def test_traces_take_other_lengths_and_batch_sizes(model: nn.Module, more: Callable[[int, int], Any]) -> None:
    trace = torch.jit.trace(model.eval(), (X, *more(7, 3)), check_trace=False)
    for time, batch in ((7, 2), (8, 3), (6, 1), (1, 3), (14, 4)):
        given = (torch.randn(time, batch, 5), *more(time, batch))
        with torch.no_grad():
            torch.testing.assert_close(trace(*given), model(*given))
