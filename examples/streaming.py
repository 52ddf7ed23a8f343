"""Use a layer on streams of data, one step at a time.

    python examples/streaming.py

Six streams begin and end at different times. `step` takes an input of one stream and the stream's state, and gives the
output and the next state: all streams share the layer, and each has a state of its own, a small tensor. Halfway weights
and states are written to a file; another process reads it and goes on. The outputs are those of whole sequences,
given at once. The time of a step is measured beside that of `torch.nn.GRUCell`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import tyro
from matplotlib.figure import Figure
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from slimrnn import GRU, Diagonal, LowRank
from slimrnn.analysis import ar1
from slimrnn.plotting import COLORS, GREY, PALE, save, styled

INPUTS, UNITS = 8, 128
SPANS = ((0, 0.7), (0.05, 0.3), (0.15, 1), (0.35, 0.85), (0.4, 0.6), (0.65, 1))  # when streams begin and end
Tensors = dict[str, Tensor]


def make_layer() -> GRU:
    return GRU(INPUTS, UNITS, structure=LowRank(24) + Diagonal(), batch_first=True).eval()


def make_streams(steps: int) -> tuple[dict[str, int], Tensors]:
    """The first step of every stream, and its inputs."""
    begins = {f"stream {n + 1}": round(begin * steps) for n, (begin, _) in enumerate(SPANS)}
    sizes = [round(end * steps) - begin for (_, end), begin in zip(SPANS, begins.values(), strict=True)]
    inputs = (0.2 * torch.from_numpy(ar1(0.98, size, seed, INPUTS)).float() for seed, size in enumerate(sizes))
    return begins, dict(zip(begins, inputs, strict=True))


@torch.inference_mode()
def serve(rnn: GRU, ticks: range, begins: dict[str, int], streams: Tensors, states: Tensors) -> Tensors:
    """At every tick a step of each stream that is on; `states` holds the states of these."""
    outputs: dict[str, list[Tensor]] = {name: [] for name in streams}
    for tick in ticks:
        for name, inputs in streams.items():
            place = tick - begins[name]
            if 0 <= place < len(inputs):
                output, state = rnn.step(inputs[place], states.get(name))  # no state: a stream begins
                assert isinstance(state, Tensor)  # an LSTM's is a pair
                states[name] = state
                outputs[name].append(output)
            elif place == len(inputs):
                del states[name]
    return {name: torch.stack(each) for name, each in outputs.items() if each}


def go_on(steps: int, out: Path) -> None:
    """The second process: weights and states from the file, then the other half of the ticks."""
    kept, rnn = load_file(out / "kept.safetensors"), make_layer()
    rnn.load_state_dict({name[len("weights.") :]: kept.pop(name) for name in list(kept) if name.startswith("weights.")})
    save_file(serve(rnn, range(steps // 2, steps), *make_streams(steps), kept), out / "outputs.safetensors")


def main(steps: int = 500, calls: int = 2000, out: Path = Path("out/streaming"), second: bool = False) -> None:
    """Serve six streams in two processes, compare with whole sequences, measure a step, and save a picture.

    Args:
        steps: ticks of the clock
        calls: steps that are measured
        out: directory of the picture, and of the files that the processes share
        second: be the second process
    """
    if second:
        go_on(steps, out)
        return
    torch.manual_seed(0)
    out.mkdir(parents=True, exist_ok=True)
    rnn, states, half = make_layer(), Tensors(), steps // 2
    begins, streams = make_streams(steps)
    served = serve(rnn, range(half), begins, streams, states)
    weights = {f"weights.{name}": weight for name, weight in rnn.state_dict().items()}
    save_file(states | weights, out / "kept.safetensors")
    print(f"{len(states)} streams are on at step {half}; another process goes on with them")
    subprocess.run([sys.executable, __file__, "--second", "--steps", f"{steps}", "--out", f"{out}"], check=True)
    for name, outputs in load_file(out / "outputs.safetensors").items():
        served[name] = torch.cat([served[name], outputs]) if name in served else outputs
    with torch.no_grad():
        gaps = [float((served[name] - rnn(inputs[None])[0][0]).abs().max()) for name, inputs in streams.items()]
    print(f"largest difference from whole sequences: {max(gaps):.1e}")
    times = measure(rnn, calls)
    print(*(f"a step of {name}: {median:.1f} µs" for name, median in times.items()), sep="\n")
    draw(served, begins, half, times, out / "streaming.png")
    print(f"picture: {out / 'streaming.png'}")


@torch.inference_mode()
def measure(rnn: GRU, calls: int) -> dict[str, float]:
    """Median microseconds of a step, in turns, so that both see the same machine."""
    cell, x = nn.GRUCell(INPUTS, UNITS), torch.randn(INPUTS)
    (_, state), hidden = rnn.step(x), cell(x)
    taken: tuple[list[float], list[float]] = [], []
    for _ in range(calls):
        start = time.perf_counter()
        _, state = rnn.step(x, state)
        between = time.perf_counter()
        hidden = cell(x, hidden)
        taken[0].append(1e6 * (between - start))
        taken[1].append(1e6 * (time.perf_counter() - between))
    names = ("slimrnn.GRU", "torch.nn.GRUCell")
    return {name: statistics.median(each) for name, each in zip(names, taken, strict=True)}


def draw(served: Tensors, begins: dict[str, int], half: int, times: dict[str, float], path: Path) -> None:
    """Some outputs of every stream while it is on, and the times."""
    figure = Figure(figsize=(8.6, 6.6), dpi=150)
    top, bottom = figure.subplots(2, 1, height_ratios=[4, 1], gridspec_kw={"hspace": 0.7})
    for row, (name, begin) in enumerate(begins.items()):
        outputs = 0.45 * served[name][:, :6] - row
        top.plot(range(begin, begin + len(outputs)), outputs, color=COLORS[row], linewidth=1.2, alpha=0.8)
    top.axvline(half, color=GREY, linestyle="--", linewidth=1.2)
    top.annotate("from here on another process ", (half, -5), color=GREY, fontsize=11, ha="right", va="center")
    top.set_yticks([-row for row in range(len(begins))], list(begins))
    top.set_xlabel("steps", fontsize=12)
    top.margins(x=0.01)
    styled(
        top,
        "Six streams, one layer, two processes",
        "six of the layer's 128 outputs; a stream's state is one small tensor",
    )
    bars = bottom.barh(list(times), list(times.values()), color=[COLORS[0], PALE])
    bottom.bar_label(bars, fmt="{:.0f} µs", padding=5, fontsize=11.5)
    bottom.invert_yaxis()
    styled(bottom, "Time of a step", "of one stream, on one core of this machine")
    bottom.xaxis.set_visible(False)
    bottom.spines["bottom"].set_visible(False)
    for axes in (top, bottom):
        axes.grid(False)
    save(figure, path)


if __name__ == "__main__":
    tyro.cli(main)
