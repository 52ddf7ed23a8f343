"""Two machines of one or two processes each, which here are on one and talk over its loopback address."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import process_cases

from slimrnn.training import Run, train
from slimrnn.training.launch import free_port

ENDS_WITHIN = 300  # seconds; when all is well it takes some ten


def _on_two_nodes(arguments: Sequence[str], second: str, processes: int) -> list[subprocess.CompletedProcess[str]]:
    """What came of torchrun on each; `second` is the name of the second node."""
    port = free_port()
    nodes = []
    for number, name in enumerate(("first", second)):
        rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "test"]
        rendezvous += ["--rdzv-conf", f"is_host={1 - number}", "--local-addr", "127.0.0.1"]
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"]
        torchrun += ["--nproc-per-node", str(processes)]
        environment = os.environ | {"NODE": name, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = str(Path(process_cases.__file__).parent)  # where the run finds its task again
        pipe = subprocess.PIPE
        command = [*torchrun, *rendezvous, *arguments]
        nodes.append(subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True))
    try:
        said = [node.communicate(timeout=ENDS_WITHIN) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    return [
        subprocess.CompletedProcess(node.args, node.returncode, *texts) for node, texts in zip(nodes, said, strict=True)
    ]


def test_two_nodes_give_the_curve_of_one_process_even_if_one_is_lost_on_the_way(tmp_path: Path) -> None:
    first, lost = _on_two_nodes([process_cases.__file__, str(tmp_path / "run")], "lost", 1)
    assert lost.returncode == -signal.SIGKILL
    assert first.returncode == 1
    assert "slimrnn: lost contact with the other process" in first.stderr
    assert f"to continue once that is fixed: slimrnn resume {tmp_path / 'run'}" in first.stderr
    assert Run(tmp_path / "run").curve["update"] == [0, 5, 10, 15]

    for node in _on_two_nodes(["-m", "slimrnn", "resume", str(tmp_path / "run")], "second", 2):
        assert node.returncode == 0, node.stderr
    run, one = Run(tmp_path / "run"), train(process_cases.config_of(tmp_path / "one"), quiet=True)
    assert (run.status, run.record["resumed"]) == ("finished", [10])
    expected = Run(one.directory).curve
    assert list(run.curve) == list(expected)
    for name in set(expected) - {"seconds"}:
        np.testing.assert_allclose(run.curve[name], expected[name], rtol=1e-9, err_msg=name)
