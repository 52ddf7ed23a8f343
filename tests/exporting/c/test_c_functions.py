"""The functions of exported C: the bits of `slimrnn.exporting.int8.exact`, and how far those are off the truth."""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np
import pytest
import torch
from many_nets import STRICT
from numpy.typing import NDArray

from slimrnn.exporting.c.mathematics import FUNCTIONS
from slimrnn.exporting.int8 import exact

TRUTH: dict[str, Any] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: np.exp(-np.logaddexp(0, -x)),
    "log": np.log,
    "softplus": lambda x: np.logaddexp(0, x),
    "sqrt": np.sqrt,
}
ULPS = {"exp": 1, "tanh": 3, "sigmoid": 3, "log": 1, "softplus": 2, "sqrt": 0.5}
MAIN = """\
int main(void)
{{
    float x;
    while (fread(&x, sizeof x, 1, stdin) == 1) {{
        const float y[] = {{{calls}}};
        fwrite(y, sizeof y, 1, stdout);
    }}
    return 0;
}}
"""


def values() -> NDArray[np.float32]:
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 2**32, 40_000, dtype=np.uint32).view(np.float32)
    near = generator.normal(size=40_000).astype(np.float32) * np.float32(8)
    special = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.72, 88.73, -103.9, 1, 2, 4, 0.25], np.float32
    )
    return np.concatenate([special, near, bits])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NDArray[np.float32]]:
    folder = tmp_path_factory.mktemp("functions")
    head = "#include <stdint.h>\n#include <stdio.h>\n"
    calls = ", ".join(f"f_{name}(x)" for name in TRUTH)
    needless = ("modulus", "relu", "sign", "maximum", "minimum")
    functions = "".join(body.replace("@", "f_") for name, body in FUNCTIONS.items() if name not in needless)
    (folder / "functions.c").write_text(head + functions + MAIN.format(calls=calls))
    command = ["gcc", *STRICT, "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
    subprocess.run([*command, "functions.c", "-o", "functions"], cwd=folder, check=True)
    done = subprocess.run([folder / "functions"], input=values().tobytes(), capture_output=True, check=True)
    columns = np.frombuffer(done.stdout, np.float32).reshape(-1, len(TRUTH))
    return {name: columns[:, k] for k, name in enumerate(TRUTH)}


@pytest.mark.parametrize("name", list(TRUTH))
def test_bits_are_those_of_the_emulation(name: str, found: dict[str, NDArray[np.float32]]) -> None:
    expected = exact.OPERATIONS[name](torch.from_numpy(values())).numpy()
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.isnan(found[name]), ~numbers)
    assert np.array_equal(found[name][numbers], expected[numbers])


@pytest.mark.parametrize("name", list(TRUTH))
def test_functions_are_accurate(name: str, found: dict[str, NDArray[np.float32]]) -> None:
    with np.errstate(all="ignore"):
        truth = TRUTH[name](values().astype(np.float64))
        nearest = truth.astype(np.float32)
    normal = np.isfinite(nearest) & (np.abs(nearest) > 1.2e-38) & np.isfinite(found[name])
    assert normal.sum() > 30_000
    error = np.abs(found[name][normal] - truth[normal]) / np.spacing(np.abs(nearest[normal])).astype(np.float64)
    assert error.max() <= ULPS[name] + 0.01, error.max()
