"""The figures of docs/bptt.md: `python docs/figures/bptt.py` writes them beside itself, or into a directory given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from figure_style import LEGEND, save, styled, two_panels
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from slimrnn.analysis import elman_bptt
from slimrnn.plotting import COLORS, GREY, PALE

Array = NDArray[np.float64]
Clip = Callable[[Array], Array]

BLUE, RED, GREEN = COLORS[:3]
DARK = COLORS[-1]
RADII = {1.1: RED, 1.0: GREEN, 0.9: BLUE}


# --- powers of W ------------------------------------------------------------------------------------------


def random_matrix(n: int, radius: float, seed: int = 0) -> Array:
    """Normally distributed numbers, scaled to a spectral radius; for a radius of 1 an orthogonal matrix."""
    drawn = np.random.default_rng(seed).normal(size=(n, n))
    if radius == 1:
        return np.asarray(np.linalg.qr(drawn)[0])
    return np.asarray(drawn * radius / np.abs(np.linalg.eigvals(drawn)).max())


def draw_powers() -> Figure:
    figure, (plane, norms) = two_panels(widths=(1, 1.5))
    plane.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=1.2, linestyle="--"))
    steps = np.arange(61)
    for radius, color in RADII.items():
        matrix = random_matrix(32, radius)
        values = np.linalg.eigvals(matrix)
        name = "1, orthogonal" if radius == 1 else f"{radius:g}"
        plane.plot(values.real, values.imag, "o", color=color, markersize=5, markeredgecolor="white", mew=0.4)
        sizes = [np.linalg.norm(np.linalg.matrix_power(matrix, int(t)), 2) for t in steps]
        norms.plot(steps, sizes, color=color, linewidth=2.2, label=f"spectral radius {name}")
        norms.plot(steps, radius**steps, color=color, linewidth=1.2, linestyle=(0, (4, 3)))
    plane.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    styled(plane, "Eigenvalues", "of three 32 × 32 matrices; dashed: the unit circle", "real part", "imaginary part")
    norms.set_yscale("log")
    styled(norms, "‖Wᵗ‖", "dashed: the scalar wᵗ with w the spectral radius", "power t", "")
    plane.grid(visible=False)
    norms.legend(**LEGEND)
    return figure


# --- gradients against the lag ----------------------------------------------------------------------------


def gradients_by_lag(radius: float, input_size: float, steps: int = 60, units: int = 64) -> Array:
    """‖∇_{h_t} L‖ relative to that of the last step, by lag; one loss, at the last step; median of 20 sequences."""
    random = np.random.default_rng(1)
    W = radius * random_matrix(units, 1)
    U, V = random.normal(size=(units, 8)) / 8**0.5, random.normal(size=(4, units)) / units**0.5
    x = input_size * random.normal(size=(steps, 20, 8))
    targets = np.full((steps, 20), -100)
    targets[-1] = random.integers(4, size=20)
    result = elman_bptt(U, W, V, np.zeros(units), np.zeros(4), x, targets)
    sizes = np.linalg.norm(result.grad_h, axis=-1)
    return np.asarray(np.median(sizes / sizes[-1], axis=1)[::-1])


def draw_lags() -> Figure:
    figure, panels = two_panels(sharey=True)
    settings = (("Weak input", 0.001, "tanh is almost linear"), ("Ordinary input", 0.5, "tanh saturates"))
    for axes, (title, size, subtitle) in zip(panels, settings, strict=True):
        for radius, color in RADII.items():
            sizes = gradients_by_lag(radius, size)
            lags = np.arange(len(sizes))
            axes.plot(lags, sizes, color=color, linewidth=2.2, label=f"W = {radius:g} · orthogonal")
            axes.plot(lags, radius**lags, color=color, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.set_yscale("log")
        styled(axes, title, f"inputs of size {size:g}: {subtitle}", "lag of h behind the loss", "")
    panels[0].set_ylabel("‖∇h‖ relative to lag 0", fontsize=11)
    panels[0].annotate("dashed: without tanh", (2, 1e-8), color=GREY, fontsize=10.5)
    panels[1].legend(**LEGEND)
    return figure


# --- clipping ---------------------------------------------------------------------------------------------


def by_norm(gradient: Array) -> Array:
    """To a norm of at most 1."""
    return gradient * min(1.0, 1 / max(float(np.linalg.norm(gradient)), 1e-300))


def by_component(gradient: Array) -> Array:
    """Each to [−1, 1]."""
    return gradient.clip(-1, 1)


CLIPS: dict[str, tuple[Clip, str]] = {
    "no clipping": (lambda gradient: gradient, RED),
    "by norm": (by_norm, BLUE),
    "by component": (by_component, GREEN),
}


def loss_and_gradient(place: Array, steps: int = 50) -> tuple[float, Array]:
    """h ← tanh(w h + b), 50 times from 0.5; of ten sequences the last output shall say class 0 for seven."""
    w, b = place
    targets = np.full((steps, 10), -100)
    targets[-1] = [0] * 7 + [1] * 3
    h0, x = np.full((10, 1), 0.5), np.zeros((steps, 10, 1))
    found = elman_bptt([[0.0]], [[w]], [[2.0], [-2.0]], [b], [0.0, 0.0], x, targets, h0)
    return found.loss / 10, np.array([found.grad_W[0, 0], found.grad_b[0]]) / 10


def descend(clip: Clip, updates: int, rate: float = 0.1) -> tuple[Array, Array]:
    """Places (updates + 1, 2) and losses of gradient descent from w = 2, b = 0."""
    place, places, losses = np.array([2.0, 0.0]), [], []
    for _ in range(updates + 1):
        loss, gradient = loss_and_gradient(place)
        places.append(place)
        losses.append(loss)
        place = place - rate * clip(gradient)
    return np.array(places), np.array(losses)


def draw_cliff() -> Figure:
    figure, (plain, curves) = two_panels(widths=(1.25, 1))
    left, right, low, high = 0.5, 2.1, -0.62, 0.3
    w, b = np.meshgrid(np.linspace(left, right, 641), np.linspace(low, high, 641))
    h = np.full_like(w, 0.5)
    for _ in range(50):
        h = np.tanh(w * h + b)
    surface = 0.7 * np.log1p(np.exp(-4 * h)) + 0.3 * np.log1p(np.exp(4 * h))
    shades = LinearSegmentedColormap.from_list("loss", ["#ffffff", "#dfe8f1", PALE, "#5f7d9c"])
    plain.contourf(w, b, surface, levels=np.linspace(0.6, 2.85, 16), cmap=shades)
    draw_descents(plain, curves)
    plain.annotate("the cliff", (1.9, -0.47), color="white", fontsize=11, rotation=-31, ha="center", va="center")
    plain.set(xlim=(left, right), ylim=(low, high))
    styled(plain, "Descent at a cliff", "the loss of a one-unit net; darker is higher", "recurrent weight w", "bias b")
    plain.grid(visible=False)
    styled(curves, "The loss", "gradient descent, rate 0.1, threshold 1", "updates", "")
    curves.set_ylim(0, 3.1)
    curves.legend(**{**LEGEND, "loc": "center right"})
    return figure


def draw_descents(plain: Axes, curves: Axes) -> None:
    """What all descents share, up to the first gradient that is clipped, and then each by itself."""
    descents = {name: descend(clip, 60) for name, (clip, _) in CLIPS.items()}
    places, losses = descents["no clipping"]
    fork = int(np.argmax((places != descents["by norm"][0]).any(1))) - 1
    plain.plot(*places[: fork + 1].T, "-o", color=DARK, linewidth=1.6, markersize=3, zorder=3)
    curves.plot(losses[: fork + 1], color=DARK, linewidth=2.2, zorder=3)
    for name, (_, color) in CLIPS.items():
        places, losses = descents[name]
        beneath = 4 if name == "no clipping" else 1.6  # its first part lies under the others
        plain.plot(*places[fork:].T, "-o", color=color, linewidth=beneath, markersize=3)
        curves.plot(range(fork, len(losses)), losses[fork:], color=color, linewidth=2.2, label=name)
    w, b = descents["no clipping"][0][fork + 1]
    away = f"to w = {w:.1f}, b = {b:.1f}".replace("-", "−")
    label = plain.annotate(away, (1.41, -0.595), color=RED, fontsize=10.5, ha="right", va="bottom")
    label.set_path_effects([withStroke(linewidth=3, foreground="white")])
    plain.annotate("start", (2, 0), (0, 8), textcoords="offset points", ha="center", fontsize=10.5)


def draw_clipping() -> Figure:
    figure, (arrows, angles) = two_panels(widths=(1, 1.4))
    arrows.add_patch(Circle((0, 0), 1, fill=False, color=BLUE, linewidth=1.1, linestyle="--"))
    arrows.add_patch(Rectangle((-1, -1), 2, 2, fill=False, color=GREEN, linewidth=1.1, linestyle="--"))
    gradient = np.array([0.8, 1.9])
    for name, (clip, color) in CLIPS.items():
        x, y = clip(gradient)
        style = {"arrowstyle": "-|>,head_width=0.3,head_length=0.6", "color": color, "linewidth": 2.2}
        arrows.annotate("", (x, y), (0, 0), arrowprops={**style, "shrinkA": 0, "shrinkB": 0})
        label, left = ("gradient" if name == "no clipping" else name), name == "by norm"
        shift, side = (-8, "right") if left else (8, "left")
        arrows.annotate(label, (x, y), (shift, 9), textcoords="offset points", color=color, fontsize=11, ha=side)
    arrows.set(xlim=(-1.25, 2.1), ylim=(-1.25, 2.1), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    styled(arrows, "Both kinds of clipping", "at a threshold of 1", "component 1", "component 2")
    arrows.grid(visible=False)
    draw_angles(angles)
    return figure


def draw_angles(axes: Axes) -> None:
    """How far a clipped ∇_W of a 32-unit net turns away from ∇_W."""
    random = np.random.default_rng(2)
    V, U = random.normal(size=(4, 32)), random.normal(size=(32, 4))
    x, targets = random.normal(size=(40, 4)), random.integers(4, size=40)
    gradient = elman_bptt(U, random_matrix(32, 1), V, np.zeros(32), np.zeros(4), x, targets).grad_W.ravel()
    largest = np.abs(gradient).max()
    shares = np.geomspace(0.001, 2, 120)
    turned = [angle(gradient.clip(-share * largest, share * largest), gradient) for share in shares]
    axes.plot(shares, turned, color=GREEN, linewidth=2.2, label="by component")
    axes.plot(shares, 0 * shares, color=BLUE, linewidth=2.2, label="by norm")
    axes.set_xscale("log")
    axes.set_ylim(-2, 50)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}°")
    subtitle = "∇W of a net with 32 units, 40 steps"
    styled(axes, "Angle to the gradient", subtitle, "threshold / largest component", "")
    axes.legend(**LEGEND)


def angle(a: Array, b: Array) -> float:
    """In degrees."""
    return float(np.degrees(np.arccos(np.clip(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), -1, 1))))


FIGURES = {
    "powers": draw_powers,
    "lags": draw_lags,
    "clipping": draw_clipping,
    "cliff": draw_cliff,
}


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        save(draw(), directory / f"bptt-{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
