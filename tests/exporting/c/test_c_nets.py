"""Every cell, every structure and every option in C equals `rnn.step`, with no warning and nothing undefined."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from many_nets import SANITIZE, STRICT, ManyNets
from torch import Tensor, nn

from registry import CELLS, FEW_PAIRS, RECTANGULAR, SIZE, STRUCTURES, randomise_
from slimrnn import GRU, LSTM, RNN, Diagonal, Kronecker, LowRank, ReadOut

STEPS = 40
TOKENS = 7


def pair(cell: str, structure: str) -> nn.Module:
    return randomise_(CELLS[cell].build(3, SIZE, structure=STRUCTURES[structure], dtype=torch.float32))


def with_readout(rnn: Any, *others: nn.Module, at: str = "every") -> nn.Module:
    return nn.Sequential(rnn, ReadOut(rnn, 5, at=at), *others)


def models() -> dict[str, nn.Module]:
    torch.manual_seed(1)
    found = {f"{cell} {structure}": pair(cell, structure) for cell, structure in FEW_PAIRS}
    for name, structure in RECTANGULAR.items():
        found[f"input {name}"] = GRU(6, SIZE, input_structure=structure)
    found |= {
        "stack": LSTM(3, 8, 3, residual=True),
        "complex stack": RNN(3, 8, 2, nonlinearity="modrelu", structure=Kronecker([2, 2, 2]), residual=True),
        "learned start": GRU(3, 8, learn_initial_state=True, num_layers=2),
        "learned complex start": RNN(3, 8, nonlinearity="modrelu", learn_initial_state=True),
        "deep": GRU(3, 8, transition_depth=3, structure=LowRank(2) + Diagonal()),
        "delays": LSTM(3, 8, delays=(3,)),
        "groups": GRU(3, 12, 2, delays=(1, 2, 4), learn_initial_state=True),
        "skip": LSTM(3, 8, skip=4, learn_initial_state=True),
        "no bias": LSTM(3, 8, bias=False),
        "zoneout": LSTM(3, 8, zoneout=(0.2, 0.4)),
        "weight norm": GRU(3, 8, weight_norm=True),
        "one hot": GRU(TOKENS, 8, one_hot=True),
        "one hot low-rank": GRU(TOKENS, 8, one_hot=True, input_structure=LowRank(2)),
        "small vocabulary": GRU(40, 8, vocabulary=TOKENS),
        "large vocabulary": GRU(2, 16, vocabulary=TOKENS, num_layers=2),
        "embedding": nn.Sequential(nn.Embedding(TOKENS, 4), GRU(4, 8), nn.Linear(8, TOKENS), nn.LogSoftmax(-1)),
        "complex tokens": RNN(TOKENS, 8, nonlinearity="modrelu", one_hot=True),
        "read-out": with_readout(GRU(3, 8)),
        "last": with_readout(GRU(3, 8), nn.Identity(), nn.Dropout(0.5), at="last"),
        "activations": with_readout(LSTM(3, 8), nn.ReLU(), nn.Linear(5, 6, bias=False), nn.Tanh(), nn.Sigmoid()),
        "softmax": with_readout(GRU(3, 8), nn.Softmax(-1)),
        "before": nn.Sequential(nn.Tanh(), nn.Linear(3, 4), nn.ReLU(), GRU(4, 8)),
        "relu first": nn.Sequential(nn.ReLU(), GRU(3, 8)),
    }
    for model in found.values():
        randomise_(model)  # type: ignore[arg-type]
    return found


def examples(found: dict[str, nn.Module]) -> dict[str, Tensor]:
    tokens = torch.randint(TOKENS, (STEPS,))
    reads_tokens = (
        "one hot",
        "one hot low-rank",
        "small vocabulary",
        "large vocabulary",
        "embedding",
        "complex tokens",
    )
    return {
        name: tokens if name in reads_tokens else torch.randn(STEPS, 6 if name.startswith("input ") else 3)
        for name in found
    }


@pytest.fixture(scope="module")
def nets() -> ManyNets:
    found = models()
    return ManyNets(found, examples(found))


@pytest.fixture(scope="module")
def sanitized(nets: ManyNets, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nets.compile(tmp_path_factory.mktemp("sanitized"), ["gcc", *STRICT, *SANITIZE])


def check_equal(nets: ManyNets, found: dict[str, Tensor], given: dict[str, Tensor]) -> None:
    for name, x in given.items():
        expected = nets.expected(name, x)
        difference = float((found[name] - expected).abs().max() / expected.abs().max())
        assert difference < 1e-5, f"{name}: {difference}"


def test_every_cell_structure_and_option_equals_step(nets: ManyNets, sanitized: Path) -> None:
    check_equal(nets, nets.run(sanitized, nets.examples), nets.examples)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_optimised_code_has_the_same_bits_and_no_warnings(
    compiler: str, nets: ManyNets, sanitized: Path, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    ours, theirs = (nets.run(p, nets.examples) for p in (sanitized, nets.compile(tmp_path, [compiler, *STRICT])))
    assert [name for name in nets.names if not torch.equal(ours[name], theirs[name])] == []


@pytest.mark.parametrize("value", [1e38, -3.4e38, 1e-40, float("inf"), float("nan")])
def test_nothing_is_undefined_for_extreme_inputs(nets: ManyNets, sanitized: Path, value: float) -> None:
    given = {name: torch.full((3, *x.shape[1:]), value) for name, x in nets.examples.items() if x.is_floating_point()}
    nets.run(sanitized, given)  # which fails where a sanitizer has found something


def test_state_after_an_extreme_input_is_that_of_torch(nets: ManyNets, sanitized: Path) -> None:
    x = torch.cat([torch.full((2, 3), 1e30), torch.randn(20, 3)])
    given = dict.fromkeys(("stack", "read-out", "gru-before dense", "lstm low-rank+diagonal"), x)
    check_equal(nets, nets.run(sanitized, given), given)
