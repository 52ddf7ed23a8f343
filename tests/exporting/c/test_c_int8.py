"""int8 layers in C have the bits of `slimrnn.quantize`, whatever compiles them."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest
import torch
from many_nets import SANITIZE, STRICT, ManyNets
from torch import Tensor, nn

import slimrnn
from registry import CELLS, SIZE, STRUCTURES, fits, randomise_
from slimrnn import GRU, LSTM, BlockDiagonal, ReadOut
from slimrnn.errors import ExportError

STEPS, TOKENS = 40, 7
FUSED = (
    "-std=gnu99",
    "-O3",
    "-mfma",
    "-Wall",
    "-Wextra",
    "-Werror",
)  # where a compiler may contract products and sums if nobody forbids it


def models() -> dict[str, nn.Module]:
    """All cells and structures that have an int8 form."""
    torch.manual_seed(2)
    chosen = [(cell, "low-rank+diagonal") for cell in CELLS] + [
        ("gru-before", structure) for structure in STRUCTURES if fits(STRUCTURES[structure], False)
    ]
    found: dict[str, nn.Module] = {}
    for cell, structure in chosen:
        model = randomise_(CELLS[cell].build(3, SIZE, structure=STRUCTURES[structure], dtype=torch.float32))
        try:
            found[f"{cell} {structure}"] = slimrnn.quantize(model)
        except ExportError:  # which has no such form
            continue
    assert len(found) > 20
    stack = GRU(3, 8, 2, residual=True, learn_initial_state=True)
    others = {
        "stack": nn.Sequential(stack, ReadOut(stack, 5), nn.ReLU(), nn.Linear(5, 4, bias=False)),
        "delays": LSTM(3, 8, delays=(3,)),
        "deep": GRU(3, 8, transition_depth=2, structure=BlockDiagonal(2)),
        "one hot": GRU(TOKENS, 8, one_hot=True),
        "vocabulary": GRU(4, 8, vocabulary=TOKENS),
    }
    for name, other in others.items():
        found[name] = slimrnn.quantize(randomise_(other))  # type: ignore[arg-type]
    return found


def together(found: dict[str, nn.Module]) -> ManyNets:
    tokens, words = torch.randint(TOKENS, (STEPS,)), ("one hot", "vocabulary")
    return ManyNets(found, {name: tokens if name in words else torch.randn(STEPS, 3) for name in found})


@pytest.fixture(scope="module")
def nets() -> ManyNets:
    return together(models())


@pytest.fixture(scope="module")
def sanitized(nets: ManyNets, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nets.compile(tmp_path_factory.mktemp("sanitized"), ["gcc", *STRICT, *SANITIZE])


def check_same_bits(nets: ManyNets, found: dict[str, Tensor], given: dict[str, Tensor]) -> None:
    for name, x in given.items():
        expected = nets.expected(name, x)
        assert torch.equal(found[name].isnan(), expected.isnan()), name
        assert torch.equal(found[name].nan_to_num(), expected.nan_to_num()), name


def test_bits_are_those_of_torch(nets: ManyNets, sanitized: Path) -> None:
    check_same_bits(nets, nets.run(sanitized, nets.examples), nets.examples)


@pytest.mark.parametrize("value", [3e38, 1e-40, 1e-20, float("inf"), float("nan")])
def test_extreme_inputs_have_these_bits_too(nets: ManyNets, sanitized: Path, value: float) -> None:
    names = [name for name, x in nets.examples.items() if x.is_floating_point()][::5]
    given = {name: torch.tensor([[value, 1.0, -value], [0.0, 0.0, 0.0], [1.0, -2.0, 3.0]]) for name in names}
    check_same_bits(nets, nets.run(sanitized, given), given)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have other options")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_compiler_fuses_products_and_sums(compiler: str, nets: ManyNets, tmp_path: Path) -> None:
    """Some nets are enough, among them one of which gcc 12 fuses sums that alternate with differences."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    if "fma" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this machine has no fused operations")
    chosen = [*nets.names[::5], "unicornn low-rank+diagonal"]
    few = together({name: nets.models[name].model for name in chosen})
    check_same_bits(few, few.run(few.compile(tmp_path, [compiler, *FUSED]), few.examples), few.examples)
