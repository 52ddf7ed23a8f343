"""Spectra through the structure against numpy's of the matrix written out."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from registry import FIELDS, SIZE, STRUCTURES, fits
from slimrnn import GRU, Dense, Diagonal, FullUnitary, Kronecker, LowRank, Structure, UnitaryProduct
from slimrnn.analysis import find_layers, power_norms, spectra, spectrum
from slimrnn.structures.base import StructuredMap

GATES = 2


def a_map(structure: Structure, size: int = SIZE, complex: bool = False, gates: int = GATES) -> StructuredMap:
    """Parameters off their initial values, so that unitary factors are not unitary."""
    torch.manual_seed(0)
    map = structure.build(size, gates=gates, complex=complex, dtype=torch.float64)
    with torch.no_grad():
        for parameter in map.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return map


def written_out(map: StructuredMap, gate: int) -> NDArray[Any]:
    return map.dense()[gate].detach().resolve_conj().numpy()


def same_values(found: NDArray[Any], expected: NDArray[Any], tolerance: float = 1e-7) -> None:
    """The same numbers, in whatever order."""
    assert len(found) == len(expected)
    rest = list(expected)
    for value in found:
        place = int(np.argmin(np.abs(np.array(rest) - value)))
        assert abs(rest.pop(place) - value) < tolerance


@pytest.mark.parametrize(("name", "complex"), FIELDS)
@pytest.mark.parametrize("gate", range(GATES))
def test_values_are_numpys_of_the_dense_matrix(name: str, complex: bool, gate: int) -> None:
    map = a_map(STRUCTURES[name], complex=complex)
    found, matrix = spectrum(map, gate), written_out(map, gate)
    assert found.complete
    same_values(found.eigenvalues, np.linalg.eigvals(matrix))
    assert (np.diff(np.abs(found.eigenvalues)) <= 1e-12).all()
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(matrix, compute_uv=False), atol=1e-12)
    assert found.spectral_radius == pytest.approx(np.abs(np.linalg.eigvals(matrix)).max())
    assert found.spectral_norm == pytest.approx(np.linalg.norm(matrix, 2))
    defect = matrix.conj().T @ matrix - np.eye(SIZE)
    assert found.unitarity_drift == pytest.approx(np.linalg.norm(defect, 2), abs=1e-12)
    assert found.unitarity_drift_frobenius == pytest.approx(np.linalg.norm(defect), abs=1e-12)
    if found.smallest_singular_value > 1e-12:
        assert found.condition_number == pytest.approx(np.linalg.cond(matrix))


def test_the_structure_is_used() -> None:
    methods = {name: spectrum(a_map(STRUCTURES[name])).method for name in STRUCTURES if fits(STRUCTURES[name], False)}
    assert {name: methods[name] for name in ("diagonal", "block", "low-rank", "low-rank-tied", "kronecker-3")} == {
        "diagonal": "diagonal",
        "block": "block-diagonal",
        "low-rank": "low-rank",
        "low-rank-tied": "low-rank",
        "kronecker-3": "kronecker",
    }
    assert methods["low-rank+diagonal"] == "dense"
    assert spectrum(a_map(LowRank(2))).condition_number == math.inf


@pytest.mark.parametrize("structure", [Kronecker([2] * 14), LowRank(4), Diagonal()], ids=repr)
def test_a_large_matrix_is_never_built(structure: Structure) -> None:
    size = 2**14  # the matrix would have 2 GB
    map = a_map(structure, size, gates=1)
    tracemalloc.start()
    found = spectrum(map)
    peak = tracemalloc.get_traced_memory()[1]  # numpy reports its arrays
    tracemalloc.stop()
    assert found.complete
    assert len(found.eigenvalues) == len(found.singular_values) == size
    assert peak < 100 * size * 8


def test_kronecker_values_of_a_large_matrix_are_those_of_its_vectors() -> None:
    """W (v_1 ⊗ v_2) = λ_1 λ_2 (v_1 ⊗ v_2), checked by the map's own product at n = 4096."""
    map = a_map(Kronecker([64, 64]), 4096, gates=1)
    first, second = (np.linalg.eig(factor[0].detach().numpy()) for factor in map.prepare())
    eigenvalue = first[0][3] * second[0][5]
    vector = torch.from_numpy(np.kron(first[1][:, 3], second[1][:, 5]))
    image = torch.complex(*(map.matvec(part.double())[0] for part in (vector.real, vector.imag)))
    torch.testing.assert_close(image, eigenvalue * vector)
    assert np.abs(spectrum(map).eigenvalues - eigenvalue).min() < 1e-12


ITERATED: dict[str, tuple[Structure, bool]] = {
    "low-rank+diagonal": (LowRank(3) + Diagonal(), False),
    "diagonal+tied, complex": (Diagonal() + LowRank(3, tied=True), True),
    "dense": (Dense(), False),
    "dense, complex": (Dense(), True),
}


@pytest.mark.parametrize("name", ITERATED)
def test_iterations_find_the_ends_of_the_spectrum(name: str) -> None:
    structure, complex = ITERATED[name]
    map = a_map(structure, 200, complex)
    found, matrix = spectrum(map, 1, exact_up_to=100), written_out(map, 1)
    singular = np.linalg.svd(matrix, compute_uv=False)
    moduli = np.sort(np.abs(np.linalg.eigvals(matrix)))[::-1]
    assert (found.method, found.complete) == ("iterative", False)
    np.testing.assert_allclose(found.singular_values, singular[[0, -1]], rtol=1e-8)
    assert found.condition_number == pytest.approx(singular[0] / singular[-1], rel=1e-7)
    assert found.spectral_radius == pytest.approx(moduli[0], rel=1e-6)
    np.testing.assert_allclose(np.abs(found.eigenvalues), moduli[: len(found.eigenvalues)], rtol=1e-4)
    assert found.radius_residual < 1e-5
    defect = matrix.conj().T @ matrix - np.eye(200)
    assert found.unitarity_drift == pytest.approx(np.linalg.norm(defect, 2))
    assert found.unitarity_drift_frobenius == pytest.approx(np.linalg.norm(defect))


@pytest.mark.parametrize(("structure", "complex"), [(FullUnitary(), False), (UnitaryProduct(), True)], ids=repr)
def test_unitary_matrices_are_known_as_such_at_any_size(structure: Structure, complex: bool) -> None:
    map = structure.build(300, complex=complex, dtype=torch.float64)
    for found in (spectrum(map), spectrum(map, exact_up_to=10)):
        assert found.spectral_radius == pytest.approx(1, abs=1e-12)
        assert found.condition_number == pytest.approx(1, abs=1e-12)
        assert found.unitarity_drift < 1e-12
        assert found.unitarity_drift_frobenius < 1e-10


def test_a_value_that_was_not_found_is_nan() -> None:
    found = spectrum(a_map(Kronecker([20, 20]) + Diagonal(), 400), exact_up_to=10)
    matrix = written_out(a_map(Kronecker([20, 20]) + Diagonal(), 400), 0)
    assert found.spectral_norm == pytest.approx(np.linalg.norm(matrix, 2))
    assert math.isnan(found.smallest_singular_value)
    assert math.isnan(found.condition_number)
    assert math.isnan(found.unitarity_drift)
    assert len(found.singular_values) == 1


@pytest.mark.parametrize(("name", "complex"), FIELDS)
def test_norms_of_powers_are_those_of_the_dense_matrix(name: str, complex: bool) -> None:
    map, powers = a_map(STRUCTURES[name], complex=complex), [1, 2, 3, 7, 20]
    found = power_norms(map, powers, gate=1)
    dense = [np.linalg.matrix_power(written_out(map, 1), k) for k in powers]
    np.testing.assert_allclose(found.log_spectral, [math.log(np.linalg.norm(p, 2)) for p in dense], atol=1e-9)
    np.testing.assert_allclose(found.log_frobenius, [math.log(np.linalg.norm(p)) for p in dense], atol=1e-9)


def test_norms_of_powers_stay_in_range() -> None:
    found = power_norms(a_map(Diagonal()), [1, 100_000])
    largest = found.log_spectral[0]
    assert found.log_spectral[1] == pytest.approx(100_000 * largest)
    assert abs(found.log_spectral[1]) > 1000  # e^±1000 is no number


def test_powers_by_iteration_are_those_of_the_dense_matrix() -> None:
    map = a_map(LowRank(3) + Diagonal(), 60)
    exact, iterated = power_norms(map, [1, 4]), power_norms(map, [1, 4], exact_up_to=10)
    assert iterated.method == "iterative"
    np.testing.assert_allclose(iterated.log_spectral, exact.log_spectral, atol=1e-9)
    assert np.isnan(iterated.log_frobenius).all()


def test_a_nilpotent_matrix_has_no_norm_left() -> None:
    found = power_norms([[0.0, 5.0], [0.0, 0.0]], [1, 2])
    assert found.log_spectral.tolist() == [math.log(5), -math.inf]


def test_a_radius_below_one_does_not_make_gradients_vanish() -> None:
    """Why ‖W‖₂ stands beside ρ: Prop. 1.1 needs more than ρ(W) < 1 once a nonlinearity comes between."""
    weight = np.array([[1.5, -1.5], [1.5, -1.5]])
    found = spectrum(weight)
    assert found.spectral_radius < 1e-7
    assert found.spectral_norm > 1
    behind_relu = np.diag([1.0, 0.0]) @ weight
    assert np.linalg.norm(np.linalg.matrix_power(behind_relu, 50), 2) > 1e8


@pytest.mark.parametrize("make", [nn.GRU, GRU], ids=["torch", "ours"])
def test_spectra_of_a_model_are_those_of_its_gates(make: type[nn.GRU] | type[GRU]) -> None:
    layer = make(2, 4, bidirectional=True)
    found = spectra(nn.Sequential(layer))
    assert [(s.layer, s.gate) for s in found] == [(n, g) for n in ("0.l0", "0.l0_reverse") for g in ("r", "u", "n")]
    for view in find_layers(layer):
        weights = [written_out(map, gate) for map, gate in view.maps.values()]
        radii = [s.spectral_radius for s in spectra(view)]
        np.testing.assert_allclose(radii, [np.abs(np.linalg.eigvals(w)).max() for w in weights], rtol=1e-5)


def test_the_summary_says_how_fast() -> None:
    found = spectrum(0.1 ** (1 / 5) * np.eye(3))
    assert found.steps_per_tenfold == pytest.approx(5)
    assert found.summary().startswith("matrix: spectral radius 0.631 (tenfold down every 5 steps), norm 0.631,")
    assert "neither up nor down" in spectrum(np.eye(3)).summary()
    assert spectrum(np.zeros((2, 2))).steps_per_tenfold == 0


def test_bad_input_has_a_message() -> None:
    with pytest.raises(ValueError, match="expected a square matrix, got 4 x 6"):
        spectrum(Dense().build(4, 6))
    with pytest.raises(ValueError, match=r"expected a square matrix, got an array of shape \(3,\)"):
        spectrum([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="expected a gate from 0 to 1, got 2"):
        spectrum(a_map(Dense()), 2)
    with pytest.raises(ValueError, match="expected finite numbers in the matrix"):
        spectrum([[math.nan]])
    with pytest.raises(ValueError, match="expected at least one power"):
        power_norms(np.eye(2), [])
    with pytest.raises(ValueError, match="expected a power to be at least 1, got 0"):
        power_norms(np.eye(2), [0])
