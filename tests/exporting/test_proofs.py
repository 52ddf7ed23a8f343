"""Proofs as files: none that is damaged or contradicts itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import slimrnn
from slimrnn import GRU
from slimrnn.errors import ExportError
from slimrnn.exporting import Proof

X = torch.randn(7, 3, 5)


def exported(path: Path) -> Proof:
    return slimrnn.export(GRU(5, 8), X, path / "net.json", to="rtneural", quiet=True)


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"format": "slimrnn proof 1"}', '{"format": 3}'])
def test_damaged_proofs_are_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(damage)
    with pytest.raises(ExportError, match=r"expected a proof \(slimrnn proof 1\) in .*proof.json, got something else"):
        Proof.read(path)
    with pytest.raises(ExportError, match="which cannot be read: No such file"):
        Proof.read(tmp_path / "none.json")


def test_every_field_of_a_proof_has_its_type(tmp_path: Path) -> None:
    exported(tmp_path)
    path = tmp_path / "net.json.proof.json"
    good = json.loads(path.read_text())
    for name in good:
        path.write_text(json.dumps({**good, name: [1]}))
        with pytest.raises(ExportError, match="expected a proof"):
            Proof.read(path)


def test_proofs_that_contradict_themselves_are_refused(tmp_path: Path) -> None:
    exported(tmp_path)
    path = tmp_path / "net.json.proof.json"
    good = json.loads(path.read_text())
    contradictions: list[dict[str, Any]] = [
        {"largest": 0.5},
        {"relative": float("nan")},
        {"tolerance": -1.0},
        {"cases": []},
        {"sha256": "a"},
        {"tolerance": float("inf")},
        {"mean": 1e9},
        {"mean": float("nan")},
        {"artefact": "../net.json"},
    ]
    for wrong in contradictions:
        path.write_text(json.dumps({**good, **wrong}))
        with pytest.raises(ExportError, match="expected a proof"):
            Proof.read(path)


def test_a_proof_knows_its_artefact(tmp_path: Path) -> None:
    proof, artefact = exported(tmp_path), tmp_path / "net.json"
    proof.check(artefact)
    data = bytearray(artefact.read_bytes())
    data[len(data) // 2] ^= 1
    artefact.write_bytes(data)
    with pytest.raises(ExportError, match=r"expected net.json as it was proven, got another file in .*: export again"):
        proof.check(artefact)
    with pytest.raises(ExportError, match="cannot read"):
        proof.check(tmp_path / "none")
