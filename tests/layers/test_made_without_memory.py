"""Nets made on the "meta" device, without numbers, and filled from a state_dict are the nets that were saved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from registry import CELLS, SIZE, STRUCTURES, fits, numbers
from slimrnn import GRU, Diagonal, Legendre, MinGRU, Permutation, Sparse, Structure
from slimrnn.sequence import Decoder, Encoder, Symbols
from slimrnn.structures.legendre import LegendreMap, legendre_memory

STRUCTURED: dict[str, Structure] = STRUCTURES | {"sum of products": Legendre(5.0) @ Diagonal() + Diagonal()}
X = numbers(4, 2, 3)


def filled(meta: nn.Module, saved: nn.Module, assign: bool) -> nn.Module:
    if not assign:
        meta = meta.to_empty(device="cpu")
    meta.load_state_dict(saved.state_dict(), assign=assign)
    return meta


def check(make: Callable[[str], nn.Module], assign: bool, run: Callable[[nn.Module], Tensor]) -> None:
    torch.manual_seed(0)
    saved = make("cpu")
    again = filled(make("meta"), saved, assign)
    assert not any(t.is_meta for t in [*again.parameters(), *again.buffers()])
    torch.testing.assert_close(run(again), run(saved), rtol=0, atol=0)


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("structure", STRUCTURED.values(), ids=STRUCTURED)
def test_layers(structure: Structure, assign: bool) -> None:
    cell = CELLS["tanh" if fits(structure, complex=False) else "modrelu"]

    def make(device: str) -> nn.Module:
        return cell.build(3, SIZE, structure=structure, device=device)

    check(make, assign, lambda rnn: rnn(X)[0])


@pytest.mark.parametrize("assign", [False, True])
def test_layers_without_recurrent_matrices(assign: bool) -> None:
    check(lambda device: MinGRU(3, 4, device=device), assign, lambda rnn: rnn(X.float())[0])


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("embedding", [None, 3])
def test_encoders_and_decoders_of_symbols(embedding: int | None, assign: bool) -> None:
    symbols = Symbols(5, embedding)

    def encoder(device: str) -> nn.Module:
        return Encoder(lambda width: GRU(width, 4, device=device), symbols, device=device)

    def decoder(device: str) -> nn.Module:
        return Decoder(lambda width: GRU(width, 4, device=device), symbols, device=device)

    sequences = torch.tensor([[0, 4], [1, 3]])
    check(encoder, assign, lambda net: net(sequences))
    check(decoder, assign, lambda net: net.log_prob(sequences))  # type: ignore[operator]


@pytest.mark.parametrize("structure", STRUCTURED.values(), ids=STRUCTURED)
def test_a_default_device_is_as_a_device(structure: Structure) -> None:
    cell = CELLS["tanh" if fits(structure, complex=False) else "modrelu"]
    with torch.device("meta"):
        found = cell.build(3, SIZE, structure=structure)
        there = cell.build(3, SIZE, structure=structure, device="cpu")
    assert all(t.is_meta for t in [*found.parameters(), *found.buffers()])
    assert not any(t.is_meta for t in [*there.parameters(), *there.buffers()])


def test_seeded_structures_are_the_same_whatever_the_default_device() -> None:
    for structure in (Permutation(seed=3), Sparse(0.25, seed=3)):
        with torch.device("meta"):
            there = structure.build(SIZE, device="cpu")
        for a, b in zip(there.buffers(), structure.build(SIZE).buffers(), strict=True):
            assert torch.equal(a, b)


def test_what_is_not_saved_is_as_exact_as_the_dtype() -> None:
    once_single = Legendre(5.0).build(6, dtype=torch.float32).double()
    assert isinstance(once_single, LegendreMap)
    memory, entry = legendre_memory(6, 5.0)
    torch.testing.assert_close(once_single.memory, memory, rtol=0, atol=0)
    torch.testing.assert_close(once_single.input_vector(), entry, rtol=0, atol=0)


def test_no_new_keys_are_saved() -> None:
    assert not Legendre(5.0).build(6).state_dict()
    assert list((Diagonal() @ Legendre(5.0)).build(6).state_dict()) == ["parts.0.diagonal"]


@pytest.mark.parametrize("size", [1, 2])
def test_legendre_has_the_same_shapes_on_meta(size: int) -> None:
    shapes = [[b.shape for b in Legendre(5.0).build(size, device=at).buffers()] for at in ("cpu", "meta")]
    assert shapes[0] == shapes[1]
