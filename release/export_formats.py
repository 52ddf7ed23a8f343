"""Every row of the table "Every export format" of docs/deployment.md, tried where slimrnn is installed with its extra.

    python release/export_formats.py

Runs in the directory it is called in, which need not be a clone. AOTInductor and C99 need a compiler.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import slimrnn
from slimrnn import GRU, LSTM, RNN, Diagonal, FullUnitary, Kronecker, LowRank

X, LENGTHS = torch.randn(7, 3, 5), torch.tensor([7, 2, 5])
OTHERS = ((1, 1), (7, 2), (12, 4))  # lengths and batch sizes
FREE = {"input": {0: "length", 1: "batch"}}


class Untraceable(slimrnn.Cell):
    """Its step uses what no traced step may."""

    gates = ("h",)

    def step(self, wx: Tensor, matvec: Any, state: Any) -> Any:
        return (torch.cumsum(torch.tanh(wx[..., 0, :] + matvec(state[0])[..., 0, :]), -1),)


class Tagger(nn.Module):
    """A user's model around our layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        structure = LowRank(2) + Diagonal()
        self.rnn = LSTM(6, 8, 2, batch_first=True, bidirectional=True, structure=structure, dropout=0.5)
        self.out = nn.Linear(16, 4)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        found: Tensor = self.out(self.rnn(self.embedding(tokens), lengths=lengths)[0])
        return found


class Steps(nn.Module):
    """A user's own loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = GRU(5, 8)

    def forward(self, input: Tensor) -> Tensor:
        state, outputs = None, []
        for x_t in input:
            y, state = self.rnn.step(x_t, state)
            outputs.append(y)
        return torch.stack(outputs)


def refused(call: Callable[[], object], message: str) -> None:
    """A call that must end in an error with these words, and did not write anything."""
    before = sorted(Path().iterdir())
    try:
        call()
    except Exception as error:
        if not re.search(message, re.sub(r"\s+", " ", str(error))):
            raise AssertionError(f"expected an error with {message!r}, got {type(error).__name__}: {error}") from error
    else:
        raise AssertionError(f"expected an error with {message!r}, got none")
    assert sorted(Path().iterdir()) == before, "something was left behind"


def same(model: nn.Module, run: Callable[[Tensor], Any]) -> str:
    """The largest difference from the model, of sizes that no example had."""
    largest = 0.0
    for time, batch in OTHERS:
        x = torch.randn(time, batch, 5)
        with torch.no_grad():
            for found, wanted in zip(run(x), model.eval()(x), strict=True):
                assert found.shape == wanted.shape, f"{tuple(found.shape)} instead of {tuple(wanted.shape)}"
                largest = max(largest, float((found - wanted).abs().max()))
    assert largest < 1e-5, f"off by {largest}"
    return f"off by {largest:.0e}"


def in_onnxruntime(path: str) -> Callable[[Tensor], list[Tensor]]:
    import onnxruntime  # type: ignore[import-untyped]

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda x: [torch.from_numpy(found) for found in session.run(None, {"input": x.numpy()})]


def torch_onnx(model: nn.Module, **options: Any) -> Any:
    return torch.onnx.export(
        model, (X,), **{"dynamo": True, "dynamic_shapes": (FREE["input"],), "verbose": False, **options}
    )


def onnx_without_table() -> Iterator[str]:
    """First: the table is known to a whole process."""
    refused(lambda: torch_onnx(GRU(5, 8).eval()), r"expected custom_translation_table=slimrnn.exporting.onnx_table\(\)")
    yield "refused"


def onnx_with_table() -> Iterator[str]:
    table = slimrnn.exporting.onnx_table()
    model = GRU(5, 8, num_layers=2, structure=LowRank(2)).eval()
    torch_onnx(model, custom_translation_table=table).save("own.onnx")
    yield same(model, in_onnxruntime("own.onnx"))
    training = GRU(5, 8, num_layers=2, dropout=0.5)
    refused(lambda: torch_onnx(training, custom_translation_table=table), r"expected model.eval\(\)")
    kru = RNN(5, 8, nonlinearity="modrelu", structure=Kronecker([2] * 3)).eval()
    refused(lambda: torch_onnx(kru, custom_translation_table=table), "expected a frozen model")
    unitary = RNN(5, 8, structure=FullUnitary()).eval()
    refused(lambda: torch_onnx(unitary, custom_translation_table=table), "No ONNX function found.*linalg_solve")
    torch_onnx(slimrnn.exporting.freeze(unitary), custom_translation_table=table).save("unitary.onnx")
    yield f"in training or complex refused; FullUnitary frozen {same(unitary, in_onnxruntime('unitary.onnx'))}"


def onnx_by_the_old_exporter() -> Iterator[str]:
    refused(lambda: torch.onnx.export(GRU(5, 8).eval(), (X,), "old.onnx", dynamo=False), "got dynamo=False")
    yield "refused"


def export_onnx() -> Iterator[str]:
    example = {"tokens": torch.randint(11, (3, 7)), "lengths": LENGTHS}
    proof = slimrnn.export(Tagger(), example, "tagger.onnx", quiet=True)
    yield f"a tagger with tokens and lengths: relative difference {proof.relative:.0e}, {len(proof.cases)} cases"
    for name, model in (
        ("gru", GRU(5, 8)),
        ("delays", GRU(5, 8, delays=(1, 2))),
        ("residual", GRU(5, 8, 2, residual=True)),
    ):
        slimrnn.export(model, X, f"{name}.onnx", quiet=True)
        yield f"{name}: {same(model, in_onnxruntime(f'{name}.onnx'))}"
    state = torch.randn(1, 3, 8, dtype=torch.complex64)
    kru = RNN(5, 8, nonlinearity="modrelu", structure=Kronecker([2] * 3))
    proof = slimrnn.export(kru, (X, state), "kru.onnx", quiet=True)
    yield f"a complex state in and out: {proof.cases[-1].way}, relative difference {proof.relative:.0e}"
    own = slimrnn.Recurrent(Untraceable, 5, 8)
    refused(lambda: slimrnn.export(own, X, "no.onnx"), r"whose step can be traced, got Untraceable.*step=True")
    refused(lambda: slimrnn.export(GRU(5, 8, skip=3), X, "no.onnx"), "whose loop over time in plain torch would fix it")
    delayed = RNN(5, 8, nonlinearity="modrelu", delays=(2,))
    refused(lambda: slimrnn.export(delayed, X, "no.onnx"), "a complex state without delays")
    yield "an untraceable cell, skip, and delays with a complex state refused"


def export_onnx_steps() -> Iterator[str]:
    untraceable = slimrnn.Recurrent(Untraceable, 5, 8)
    for name, model in (("lstm", LSTM(5, 8, 2)), ("skip", GRU(5, 8, skip=3)), ("untraceable", untraceable)):
        proof = slimrnn.export(model, X[0], f"{name}-step.onnx", step=True, quiet=True)
        yield f"{name}: {proof.cases[-1].way}, relative difference {proof.relative:.0e}"
    refused(
        lambda: slimrnn.export(nn.Linear(5, 8), X[0], "no.onnx", step=True), r"expected a model with step\(x_t, state"
    )


def export_torch() -> Iterator[str]:
    model = LSTM(5, 8, bidirectional=True)
    slimrnn.export(LSTM(5, 8, bidirectional=True), {"input": X, "lengths": LENGTHS}, "ragged.pt2", quiet=True)
    gru = GRU(5, 8, structure=LowRank(2))
    slimrnn.export(gru, X, "net.pt2", quiet=True)
    program: Any = torch.export.load("net.pt2").module()
    yield same(gru, lambda x: program(input=x))
    for plain in (GRU(5, 8, backend="reference"), GRU(5, 8, skip=3)):
        refused(lambda plain=plain: slimrnn.export(plain, X, "no.pt2"), "expected a layer that runs in the native core")  # type: ignore[misc]
    exported = torch.export.export(model.eval(), (X,))
    refused(lambda: exported.module()(torch.randn(8, 3, 5)), "Guard failed")
    yield "layers in plain torch refused; without dynamic_shapes, other sizes, too"


def export_aoti() -> Iterator[str]:
    model = GRU(5, 8, structure=LowRank(2) + Diagonal())
    proof = slimrnn.export(model, X, "package", to="aoti", quiet=True)
    package: Any = torch._inductor.aoti_load_package("package.pt2")
    yield f"{same(model, lambda x: package(input=x))}, {proof.bytes:,} bytes"
    refused(
        lambda: slimrnn.export(GRU(5, 8, skip=3), X, "no", to="aoti"), "expected a layer that runs in the native core"
    )


def export_int8() -> Iterator[str]:
    proof = slimrnn.export(GRU(5, 8), X, "net-int8", to="int8", quiet=True)
    assert proof.largest == 0, proof
    yield "what is loaded gives the same bits"
    kru = RNN(5, 8, nonlinearity="modrelu", structure=Kronecker([2] * 3))
    refused(lambda: slimrnn.export(kru, X, "no", to="int8"), "complex")
    yield "a complex state refused"


def export_c() -> Iterator[str]:
    proof = slimrnn.export(LSTM(5, 8, 2, structure=LowRank(2) + Diagonal()), X, "net.c", quiet=True)
    yield f"relative difference {proof.relative:.0e}, {proof.bytes:,} bytes"
    refused(lambda: slimrnn.export(GRU(5, 8, bidirectional=True), X, "no.c"), "a step sees only the past")
    yield "two directions refused"


def export_rtneural() -> Iterator[str]:
    proof = slimrnn.export(GRU(5, 8, structure=LowRank(2)), X, "rt.json", to="rtneural", quiet=True)
    yield f"relative difference {proof.relative:.0e}"
    rnn = RNN(5, 8)
    refused(lambda: slimrnn.export(rnn, X, "no.json", to="rtneural"), r"expected layers that RTNeural has \(")
    yield "another layer refused"


def jit() -> Iterator[str]:
    model = GRU(5, 8).eval()
    traced: Any = torch.jit.trace(model, (X,))
    yield same(model, traced)
    refused(lambda: torch.jit.trace(GRU(5, 8, skip=3).eval(), (X,)), "without skip for torch.jit.trace")
    plain: Any = torch.jit.trace(GRU(5, 8, backend="reference").eval(), (X,))
    refused(lambda: plain(torch.randn(8, 3, 5)), "failed in the TorchScript interpreter")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.jit.trace(Steps().eval(), (X,))
    assert any("trace to be incorrect" in str(one.message) for one in told), "torch did not warn"
    refused(lambda: slimrnn.export(Steps(), X, "no.onnx"), "whose forward calls a recurrent layer of slimrnn")
    refused(lambda: torch.jit.script(model), "torch.jit.script cannot read slimrnn's layers: use slimrnn.export")
    yield "skip, another length in plain torch, and torch.jit.script refused"


def files() -> Iterator[str]:
    model = GRU(5, 8, structure=LowRank(2))
    slimrnn.save(model, "saved")
    yield f"slimrnn.load: {same(model, slimrnn.load('saved'))}"
    refused(lambda: slimrnn.load("gru.onnx"), "expected a saved model")
    for file in sorted(Path("saved").iterdir()):
        good = file.read_bytes()
        file.write_bytes(good[: len(good) // 2])
        refused(lambda file=file: slimrnn.load("saved"), f"{file.name} is damaged")  # type: ignore[misc]
        file.write_bytes(good)
    Path("damaged.onnx").write_bytes(Path("gru.onnx").read_bytes()[:-100])
    refused(lambda: in_onnxruntime("damaged.onnx"), "Protobuf parsing failed")
    proof = slimrnn.exporting.Proof.read("gru.onnx.proof.json")
    proof.check("gru.onnx")
    refused(lambda: proof.check("damaged.onnx"), "expected gru.onnx as it was proven")
    Path("damaged.proof.json").write_bytes(Path("gru.onnx.proof.json").read_bytes()[:-100])
    for path in ("damaged.onnx", "damaged.proof.json", "saved/config.json"):
        refused(lambda path=path: slimrnn.exporting.Proof.read(path), "expected a proof")  # type: ignore[misc]
    yield "damaged files refused"


WAYS = {
    "torch.onnx.export without the table": onnx_without_table,
    "torch.onnx.export with the table": onnx_with_table,
    "torch.onnx.export(dynamo=False)": onnx_by_the_old_exporter,
    "export to net.onnx": export_onnx,
    "export to net.onnx, step=True": export_onnx_steps,
    "export to net.pt2, torch.export": export_torch,
    "export to AOTInductor": export_aoti,
    "export to int8": export_int8,
    "export to C99": export_c,
    "export to RTNeural": export_rtneural,
    "torch.jit": jit,
    "files": files,
}


def main() -> None:
    torch.manual_seed(0)
    warnings.simplefilter("ignore")  # torch's own
    print(f"tried: slimrnn in {Path(slimrnn.__file__).parent}")
    for name, way in WAYS.items():
        for seen in way():
            print(f"tried: {name}: {seen}", flush=True)


if __name__ == "__main__":
    main()
