"""`slimrnn.export(..., to="c")`: its files, its proof, its names, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import slimrnn
from registry import randomise_
from slimrnn import GRU, LSTM, RNN, Diagonal, LowRank, ReadOut
from slimrnn.errors import ExportError
from slimrnn.exporting import Proof, c_source, proving
from slimrnn.exporting.c.interface import read_interface
from slimrnn.exporting.examples import Sizes

X = torch.randn(9, 5)
LONG = proving.UNROLLED


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "UNROLLED", (Sizes(50, 2),))


def exported(path: Path, model: nn.Module | None = None, example: Any = X, **options: Any) -> Proof:
    torch.manual_seed(3)
    return slimrnn.export(model or GRU(5, 8), example, path, quiet=True, **options)


def test_two_files_and_one_proof_of_both(tmp_path: Path) -> None:
    proof = exported(tmp_path / "net.c", randomise_(GRU(5, 8)), step=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.c", "net.c.proof.json", "net.h"]
    assert Proof.read(tmp_path / "net.c.proof.json") == proof
    assert proof.step
    assert list(proof.others) == ["net.h"]
    assert proof.bytes == sum((tmp_path / name).stat().st_size for name in ("net.c", "net.h"))
    assert proof.measured["bytes of weights"] == 4 * (3 * 8 * (5 + 8) + 4 * 8)
    assert proof.measured["bytes of state"] == 32
    assert "bytes of weights: 1376" in str(proof)


def test_random_sequences_are_of_500_steps() -> None:
    assert [sizes.length for sizes in LONG].count(500) > 1


@pytest.mark.parametrize(
    ("model", "example", "shape"),
    [
        (GRU(5, 8), torch.randn(5), "x 1x1x5"),
        (GRU(5, 8), torch.randn(4, 5), "x 4x1x5"),
        (GRU(5, 8), torch.randn(4, 2, 5), "x 4x2x5"),
        (GRU(5, 8, batch_first=True), torch.randn(4, 2, 5), "x 2x4x5"),
        (GRU(5, 8, one_hot=True), torch.tensor([3, 1]), "x 2x1"),
        (GRU(5, 8, vocabulary=4), torch.tensor(3), "x 1x1"),
    ],
)
def test_an_example_is_a_step_a_sequence_or_several(
    model: nn.Module, example: Tensor, shape: str, tmp_path: Path
) -> None:
    assert exported(tmp_path / "net.c", model, example).cases[0].inputs == shape


def test_given_sequences_are_in_the_proof(tmp_path: Path) -> None:
    proof = exported(tmp_path / "net.c", given=[torch.randn(30, 5), torch.randn(3, 4, 5)])
    assert [case.inputs for case in proof.cases if case.given] == ["x 9x1x5", "x 30x1x5", "x 3x4x5"]


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(LSTM(5, 8, 2, structure=LowRank(2) + Diagonal()), nn.Linear(8, 3))
    for name in ("a", "b"):
        exported(tmp_path / name / "net.c", model)
    for file in ("net.c", "net.h"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_weights_come_back_bit_for_bit(tmp_path: Path) -> None:
    linear = nn.Linear(8, 3)
    model, weight = nn.Sequential(GRU(5, 8), linear), linear.weight
    with torch.no_grad():
        weight[0, :4] = torch.tensor([1e-45, -1.1754944e-38, 3.4028235e38 / 2**20, 1 / 3])
        weight[0, 2:] = 0.1
    exported(tmp_path / "net.c", model)
    text = (tmp_path / "net.c").read_text()
    found = re.search(r"net_linear_0_weight\[24\] = \{([^}]*)\}", text)
    assert found
    numbers = [float.fromhex(n.strip().rstrip("f")) for n in found[1].split(",")]
    assert torch.equal(torch.tensor(numbers, dtype=torch.float32), weight.detach().flatten())


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ['x"; system("true"); "', "a b", "net\n", "net;", "int*", "ünit", "-net", "#include", "a" * 40, "9net", "_net"],
)
def test_hostile_names_are_refused(name: str, tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [(f"{name}.c", {}), ("net.c", {"prefix": name})]
    for path, options in cases:
        with pytest.raises((ExportError, OSError), match="expected"):
            exported(tmp_path / path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_prefix_names_everything(tmp_path: Path) -> None:
    exported(tmp_path / "my-net.1.c", prefix="Wake")
    header = (tmp_path / "my-net.1.h").read_text()
    assert "void Wake_step(Wake_state *state" in header
    assert "#define WAKE_INPUTS 5" in header
    assert read_interface(tmp_path / "my-net.1.c").prefix == "Wake"
    exported(tmp_path / "my-net.c")
    assert "my_net_step" in (tmp_path / "my-net.h").read_text()


def test_names_of_classes_cannot_end_a_comment(tmp_path: Path) -> None:
    class Cell(slimrnn.Cell):
        gates = ("h",)

        def step(self, wx: Tensor, matvec: Any, state: Any) -> Any:
            return (torch.tanh(wx[..., 0, :] + matvec(state[0])[..., 0, :]),)

    Cell.__name__ = '*/ int main(void) { system("x"); } /* ??/'
    exported(tmp_path / "net.c", slimrnn.Recurrent(Cell, 5, 8))
    text = (tmp_path / "net.c").read_text()
    assert "??/" not in text
    assert text.count("/*") == text.count("*/")
    assert "int main(void) { system" in text  # within a comment: it was compiled


# --- what cannot be --------------------------------------------------------------------------------------------------


class Own(nn.Module):
    def __init__(self, honest: bool = True) -> None:
        super().__init__()
        self.rnn, self.head, self.honest = GRU(5, 8), nn.Linear(8, 2), honest

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.rnn(x)[0])
        return y * (1 if self.honest else 2)

    def step(self, x_t: Tensor, state: Any) -> Any:
        y, state = self.rnn.step(x_t, state)
        return self.head(y) * (1 if self.honest else 2), state

    def initial_state(self, batch: int) -> Any:
        return self.rnn.initial_state(batch)


class Told(Own):
    def stages(self) -> list[nn.Module]:
        return [self.rnn, self.head]


def test_a_model_tells_its_stages_and_is_held_to_them(tmp_path: Path) -> None:
    exported(tmp_path / "net.c", Told())
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(ExportError, match="expected the c export to differ by at most 1e-05"):
        exported(tmp_path / "net.c", Told(honest=False))
    assert list(tmp_path.iterdir()) == []


def test_rounding_of_the_model_itself_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_source, "EXPORTER", dataclasses.replace(c_source.EXPORTER, tolerance=1e-9))
    proof = exported(tmp_path / "net.c")
    assert 1e-9 < proof.relative <= proof.tolerance < 1e-5
    with pytest.raises(ExportError, match=r"got 5\.0e-01 for x"):
        exported(tmp_path / "other.c", Told(honest=False))
    with pytest.raises(ExportError, match="at most 1e-09"):
        exported(tmp_path / "other.c", tolerance=1e-9)


class Untraceable(slimrnn.Cell):
    gates = ("h",)

    def step(self, wx: Tensor, matvec: Any, state: Any) -> Any:
        return (torch.cumsum(torch.tanh(wx[..., 0, :] + matvec(state[0])[..., 0, :]), -1),)


def mean_readout() -> nn.Module:
    rnn = GRU(5, 8)
    return nn.Sequential(rnn, ReadOut(rnn, 2, at="mean"))


def infinite() -> nn.Module:
    rnn = GRU(5, 8)
    with torch.no_grad():
        rnn.layer(0).cell.bias[0, 0] = torch.inf  # type: ignore[index]
    return rnn


@pytest.mark.filterwarnings("ignore:Untraceable runs in plain torch")
@pytest.mark.parametrize(
    ("model", "example", "message"),
    [
        (GRU(5, 8, bidirectional=True), X, "expected one direction, got GRU with two: a step sees only the past"),
        (Own(), X, r"or a model with stages\(\), a list of these in the order .*, got Own"),
        (nn.Sequential(GRU(5, 8), nn.GELU()), X, r"expected recurrent layers .*, got Sequential.1 \(GELU\)"),
        (nn.Sequential(nn.Linear(5, 8)), X, "a model with a recurrent layer of slimrnn, got Sequential without"),
        (mean_readout(), X, "at='every' step or the 'last', .* got at='mean' .* a step does not see the others"),
        (nn.Sequential(GRU(5, 8), nn.Softmax(1)), X, r"expected Softmax\(dim=-1\), got dim=1"),
        (GRU(5, 8, dtype=torch.float64), X.double(), r"expected float32 weights for C, .*: export model.float\(\)"),
        (slimrnn.Recurrent(Untraceable, 5, 8), X, "expected a cell whose step can be traced for C, got Untraceable"),
        (infinite(), X, "expected finite weights, got infinite ones or NaN in layer_0: bias"),
        (GRU(5, 8), torch.randn(4, 6), "expected inputs of 5 numbers, got 6"),
        (GRU(5, 8), torch.ones(4, dtype=torch.int64), "got integers for a layer that reads vectors"),
        (GRU(5, 8), "text", "expected inputs of a step .*, got a str"),
        (GRU(5, 8), torch.randn(2, 3, 4, 5), r"got a tensor of \(2, 3, 4, 5\)"),
        (RNN(5, 8, nonlinearity="modrelu", delays=(2,)), X, "expected a complex state without delays and skip"),
    ],
)
def test_what_cannot_be_written_is_refused(model: nn.Module, example: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=message):
        exported(tmp_path / "net.c", model, example)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ExportError, match=r"expected a C compiler .* install gcc or clang, or set CC"):
        exported(tmp_path / "net.c")
    monkeypatch.setenv("CC", "no-such-compiler --flag")
    with pytest.raises(ExportError, match="got no-such-compiler, which cannot be run: No such file"):
        exported(tmp_path / "net.c")
    assert list(tmp_path.iterdir()) == []


def test_fast_math_is_refused(tmp_path: Path) -> None:
    exported(tmp_path / "net.c")
    command = ["gcc", "-std=c99", "-c", "net.c", "-o", "net.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([*command, "-ffast-math"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    assert "expected no -ffast-math" in done.stderr


def test_the_object_needs_nothing_but_what_compilers_call(tmp_path: Path) -> None:
    """No malloc and no libm, and nothing that can be written: weights are constants."""
    exported(tmp_path / "net.c", nn.Sequential(RNN(5, 8, nonlinearity="modrelu"), nn.Linear(16, 3), nn.LogSoftmax(-1)))
    subprocess.run(["gcc", "-std=c99", "-O2", "-c", "net.c"], cwd=tmp_path, check=True)
    names = subprocess.run(["nm", "net.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split("\n")
    needed = {line.split()[-1] for line in names if " U " in line}
    assert needed <= {"memcpy", "memset", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"}
    assert not [line for line in names if re.search(r" [BbDdCc] ", line)]


def test_tokens_out_of_range_change_nothing(tmp_path: Path) -> None:
    exported(tmp_path / "net.c", GRU(5, 8, vocabulary=4), torch.tensor([0, 3]))
    (tmp_path / "main.c").write_text(
        """\
#include "net.h"
#include <string.h>

int main(void)
{
    net_state state, before;
    float y[NET_OUTPUTS] = {0}, y_before[NET_OUTPUTS];
    const int32_t wrong[] = {-1, 4, 2147483647, -2147483647 - 1};
    net_init(&state);
    if (net_step(&state, 3, y) != 0) {
        return 1;
    }
    before = state;
    memcpy(y_before, y, sizeof y);
    for (int k = 0; k < 4; k++) {
        if (net_step(&state, wrong[k], y) != -1 || memcmp(&before, &state, sizeof state)
            || memcmp(y_before, y, sizeof y)) {
            return 2;
        }
    }
    return 0;
}
"""
    )
    command = ["gcc", "-std=c99", "-fsanitize=undefined,address", "main.c", "net.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"]).returncode == 0


def test_a_damaged_header_is_no_interface(tmp_path: Path) -> None:
    exported(tmp_path / "net.c")
    header = tmp_path / "net.h"
    header.write_text(header.read_text().replace("_INPUTS", "_OTHERS"))
    with pytest.raises(ExportError, match=r"expected an exported header in .*net.h, got another file"):
        read_interface(header)
    header.unlink()
    with pytest.raises(ExportError, match="which cannot be read"):
        read_interface(header)


@pytest.mark.parametrize("field", ["others", "measured"])
def test_damaged_proofs_are_refused(field: str, tmp_path: Path) -> None:
    exported(tmp_path / "net.c")
    path = tmp_path / "net.c.proof.json"
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, field: "net.h"}))
    with pytest.raises(ExportError, match="expected a proof"):
        Proof.read(path)


def test_int8_is_held_to_every_bit(tmp_path: Path) -> None:
    model = slimrnn.quantize(nn.Sequential(GRU(5, 8), nn.Linear(8, 3)))
    proof = exported(tmp_path / "net.c", model)
    assert proof.tolerance == 0
    assert proof.largest == 0
    mixed = slimrnn.quantize(nn.Sequential(GRU(5, 8), nn.Linear(8, 3), nn.Softmax(-1)))
    assert exported(tmp_path / "mixed.c", mixed).tolerance == 1e-5


def test_a_complex_cell_is_not_taken_for_the_real_one_with_the_same_step(tmp_path: Path) -> None:
    for is_complex in (True, False, True):  # whichever was traced last
        model = RNN(3, 6, nonlinearity="identity", complex=is_complex)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.5)
        RNN(3, 6, nonlinearity="identity", complex=not is_complex)(torch.randn(2, 1, 3))
        assert slimrnn.export(model, torch.randn(5, 3), tmp_path / "net.c", quiet=True).relative <= 1e-5


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.linear = GRU(5, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.rnn(x)[0]).log_softmax(-1)  # type: ignore[no-any-return]

    def stages(self) -> list[nn.Module]:
        return [self.rnn, self.linear]


def test_stages_that_are_not_what_forward_does_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"expected Normalised.forward to give what its stages give"):
        exported(tmp_path / "net.c", Normalised(), torch.randn(9, 3, 5))


def test_hooks_are_refused(tmp_path: Path) -> None:
    model = nn.Sequential(GRU(5, 4), ReadOut(GRU(5, 4), 2))
    model[1].register_forward_hook(lambda module, given, output: 100 * output)
    with pytest.raises(ExportError, match="expected modules without hooks, got some in Sequential"):
        exported(tmp_path / "net.c", model)


def test_parameters_of_minus_zero(tmp_path: Path) -> None:
    model = LSTM(5, 4, peephole=True)
    with torch.no_grad():
        model.layer(0).cell.get_parameter("peephole").fill_(-0.0)
    exported(tmp_path / "net.c", model)


def test_an_example_without_steps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"expected sequences of at least one step, got a tensor of \(0, 2, 5\)"):
        exported(tmp_path / "net.c", GRU(5, 4), torch.zeros(0, 2, 5))
