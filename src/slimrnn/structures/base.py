"""The contract of a structure: a spec that the user writes, and a map that holds the parameters.

    y_g = W_g h        for every gate g, with W_g restricted to a family of cheap matrices

Shape suffixes used in this package: G gates, m outputs, n inputs of the map, `...` any leading axes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import Self

from slimrnn import _hooks
from slimrnn._checks import check_count, check_real_dtype
from slimrnn._fields import as_complex, field_dtype, real_view
from slimrnn._watched import Watched
from slimrnn.ops.terms import Term

if TYPE_CHECKING:
    from slimrnn.structures.product import Product
    from slimrnn.structures.sum import Sum

ALL = slice(None)  # "every gate"
Prepared = tuple[Tensor, ...]


@dataclass(frozen=True)
class Shape:
    """What a map must fit: `gates` matrices of `out_size` x `in_size` over the real or complex numbers.

    `dtype` is the real type (float32 for complex64) and `device` the place of the initial parameters."""

    out_size: int
    in_size: int
    gates: int = 1
    complex: bool = False
    dtype: torch.dtype | None = None
    device: torch.device | str | None = None

    def __post_init__(self) -> None:
        for name in ("out_size", "in_size"):
            check_count(name, getattr(self, name))
        if self.gates != 0:  # a cell may have no recurrent matrices
            check_count("gates", self.gates)
        if self.dtype is not None:
            check_real_dtype(self.dtype)
            field_dtype(self.dtype, self.complex)

    def uniform(self, bound: float, *sizes: int) -> Tensor:
        """Real numbers uniform in ±bound."""
        return torch.empty(sizes, dtype=self.dtype, device=self.device).uniform_(-bound, bound)


class Structure:
    """A family of matrices, as the user writes it: `LowRank(24) + Diagonal()`. Frozen and comparable."""

    map_type: ClassVar[type[StructuredMap]]

    def check(self, shape: Shape) -> None:
        """Raise ValueError when no matrix of this family has this shape."""

    def build(
        self,
        out_size: int,
        in_size: int | None = None,
        gates: int = 1,
        *,
        complex: bool = False,
        weight_norm: bool = False,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> StructuredMap:
        """A module with freshly initialised parameters: `gates` matrices of `out_size` x `in_size`."""
        shape = Shape(out_size, out_size if in_size is None else in_size, gates, complex, dtype, device)
        self.check(shape)
        if not gates:
            from slimrnn.structures.no_matrices import NoMatrices

            return NoMatrices(self, shape, weight_norm)
        return self.map_type(self, shape, weight_norm)

    def nearest(self, matrix: Tensor) -> StructuredMap:
        """The member of this family that is closest to `matrix`, (m, n) or (G, m, n), in Frobenius norm.

        Sums, products, three or more Kronecker factors, Householder and UnitaryProduct have no closed form: there it
        is a local optimum."""
        if not isinstance(matrix, Tensor) or not (matrix.is_floating_point() or matrix.is_complex()):
            raise TypeError(f"expected a matrix of floating numbers, got {getattr(matrix, 'dtype', type(matrix))}")
        if matrix.dim() not in (2, 3):
            raise ValueError(f"expected a matrix of shape (m, n) or (G, m, n), got {tuple(matrix.shape)}")
        stacked = matrix if matrix.dim() == 3 else matrix.unsqueeze(0)
        gates, out_size, in_size = stacked.shape
        field, dtype, device = matrix.is_complex(), matrix.real.dtype, matrix.device
        return self.build(out_size, in_size, gates, complex=field, dtype=dtype, device=device).nearest_(stacked)

    def __add__(self, other: object) -> Sum:
        from slimrnn.structures.sum import Sum

        if not isinstance(other, Structure):
            return NotImplemented
        return Sum((self, other))

    def __matmul__(self, other: object) -> Product:
        from slimrnn.structures.product import Product

        if not isinstance(other, Structure):
            return NotImplemented
        return Product((self, other))


class StructuredMap(Watched):
    """y_g = W_g h, one matrix per gate, together with its parameters.

    A subclass registers its parameters with `add_parameter`, returns from `prepare` the tensors to multiply with and
    multiplies in `matvec`. It may also define `rmatvec`, `dense`, `project_`, `penalty` and `macs`, and name the
    `native` structure (csrc/structures) that takes the same tensors; without one the layer runs in plain torch.

    Complex parameters are stored as real tensors with a last axis of two (real, imaginary part), so that
    `.double()`, optimizers, clipping and parameter counts treat every parameter alike; `tensor(name)` is the
    complex view.
    """

    shape: Shape
    native: str | None = None  # of the class; an instance that the core does not take has None
    takes_any_numbers: bool = True  # the native structure, or only those that `prepare` makes

    def __init__(self, spec: Structure, shape: Shape, weight_norm: bool = False) -> None:
        super().__init__()
        self.spec = spec
        self.shape = shape
        self.weight_norm = weight_norm
        self.normed: dict[str, bool] = {}  # matrices whose rows are normalised: has it a trainable scale?

    # --- parameters -------------------------------------------------------------------------------------

    @property
    def complex(self) -> bool:
        return self.shape.complex

    def add_parameter(
        self, name: str, initial: Tensor, *, rows: bool = False, scale: bool = True, trainable: bool = True
    ) -> None:
        """Register `initial` under `name`; `rows` says that it is a matrix whose rows have free norms, which
        weight normalisation (with a trainable `scale` or without) and `clip_rows_` act on."""
        stored = torch.view_as_real(initial).contiguous() if initial.is_complex() else initial
        self.register_parameter(name, nn.Parameter(stored, requires_grad=trainable))
        if rows:
            self.normed[name] = scale
            if self.weight_norm and scale:
                self.register_parameter(name + "_scale", nn.Parameter(_row_norms(initial)))

    def stored(self, name: str) -> Tensor:
        """The parameter as it is stored, or what torch.nn.utils.parametrizations or prune make of it."""
        return _hooks.read(self, name)

    def _raw(self, name: str) -> Tensor:
        stored = self.stored(name)
        return as_complex(stored) if self.complex else stored

    def tensor(self, name: str) -> Tensor:
        """The parameter as `matvec` uses it: complex where the map is, weight-normalised where asked for.

        w = s v / |v| for every row v (Salimans & Kingma 2016; low-rank paper, A.2)."""
        raw = self._raw(name)
        if not (self.weight_norm and name in self.normed):
            return raw
        unit = raw / _row_norms(raw).clamp_min(torch.finfo(raw.dtype).tiny).unsqueeze(-1)
        return unit * self.stored(name + "_scale").unsqueeze(-1) if self.normed[name] else unit

    @torch.no_grad()
    def assign_(self, name: str, value: Tensor) -> None:
        """Set a parameter so that `tensor(name)` equals `value` (its rows of unit norm, where they have no scale)."""
        _hooks.write(self, name, torch.view_as_real(value.resolve_conj()) if self.complex else value)
        if self.weight_norm and self.normed.get(name, False):
            _hooks.write(self, name + "_scale", _row_norms(value))

    @torch.no_grad()
    def clip_rows_(self, max_norm: float) -> None:
        """Scale down every matrix row whose norm exceeds `max_norm` (low-rank paper, A.2).

        With weight normalisation both the stored rows and their scales are held, so that neither grows."""
        for name, scaled in self.normed.items():
            raw = self._raw(name)
            norms = _row_norms(raw).unsqueeze(-1)
            if bool((norms > max_norm).any()):
                _hooks.write(self, name, real_view(torch.where(norms > max_norm, raw * (max_norm / norms), raw)))
            if self.weight_norm and scaled:
                _hooks.write(self, name + "_scale", self.stored(name + "_scale").clamp(-max_norm, max_norm))

    @property
    def num_parameters(self) -> int:
        """Real numbers held, a complex one counting twice."""
        return sum(p.numel() for p in self.parameters())

    @property
    def macs(self) -> int:
        """Real multiply-adds of one `matvec` of one vector (a complex one is four)."""
        raise NotImplementedError(f"{type(self).__name__} does not state its multiply-adds")

    # --- the linear map ---------------------------------------------------------------------------------

    def prepare(self) -> Prepared:
        """The tensors that `matvec` multiplies with, built once per sequence."""
        raise NotImplementedError(f"{type(self).__name__} does not define prepare")

    def matvec(self, h: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        """(..., n) -> (..., G, m): W_g h for the chosen gates."""
        raise NotImplementedError(f"{type(self).__name__} does not define matvec")

    def affine(self, x: Tensor, bias: Tensor | None, prepared: Prepared | None = None) -> Tensor:
        """W_g x + b_g for a real input x, also where the map is complex; bias is (G, m)."""
        y = self.matvec(x.to(field_dtype(x.dtype, self.complex)), prepared=prepared)
        return y if bias is None else y + bias

    def input_scale(self) -> Tensor | None:
        """Factors (G, m) on the input product U x of a layer whose recurrent map this is, or None."""
        return None

    def rmatvec(self, y: Tensor, gates: slice = ALL, prepared: Prepared | None = None) -> Tensor:
        """(..., G, m) -> (..., n): the sum over the chosen gates of W_g^H y_g, the adjoint of `matvec`."""
        prepared = prepared or self.prepare()
        zero = y.new_zeros(*y.shape[:-2], self.shape.in_size)
        adjoint = torch.func.vjp(lambda h: self.matvec(h, gates, prepared), zero)[1]
        result: Tensor = adjoint(y)[0]
        return result

    def dense(self) -> Tensor:
        """The matrices written out: (G, m, n)."""
        prepared = self.prepare()
        some = self.some_numbers(prepared)
        identity = torch.eye(self.shape.in_size, dtype=some.dtype, device=some.device)
        return self.matvec(identity, prepared=prepared).permute(1, 2, 0)

    def some_numbers(self, prepared: Prepared | None = None) -> Tensor:
        """A tensor with the dtype and the device of the matrices, whatever it holds."""
        return (prepared or self.prepare())[0]

    def terms(self, prepared: Prepared) -> list[Term] | None:
        """The map as the native core takes it, or None: then the reference scan runs."""
        return None if self.native is None else [Term(self.native, prepared)]

    @property
    def term_count(self) -> int | None:
        """How many terms the native core takes it as, or None where it runs in plain torch."""
        if type(self).terms is StructuredMap.terms:
            return None if self.native is None else 1
        with torch.no_grad():
            terms = self.terms(self.prepare())
        return None if terms is None else len(terms)

    # --- approximation and constraints ------------------------------------------------------------------

    def nearest_(self, matrix: Tensor) -> Self:
        """Move to the member closest to `matrix`, (G, m, n), in Frobenius norm; returns itself."""
        matrix = self._matching(matrix)
        with torch.no_grad():
            if matrix.dtype in (torch.float16, torch.bfloat16):  # no decompositions in half precision
                self.load_state_dict(copy.deepcopy(self).float().nearest_(matrix.float()).state_dict())
            else:
                self.project_(matrix)
        return self

    def nearest(self, matrix: Tensor) -> Self:
        """A copy of this map, moved to the member closest to `matrix`."""
        return copy.deepcopy(self).nearest_(matrix)

    def project_(self, matrix: Tensor) -> None:
        """Set the parameters so that the map is as close to `matrix`, (G, m, n), as this family comes."""
        raise NotImplementedError(f"{type(self).__name__} does not define its nearest member")

    def _matching(self, matrix: Tensor) -> Tensor:
        """`matrix` checked, with the gate axis, and in this map's field, dtype and device."""
        shape = self.shape
        wanted = (shape.gates, shape.out_size, shape.in_size)
        if matrix.dim() == 2 and shape.gates == 1:
            matrix = matrix.unsqueeze(0)
        if tuple(matrix.shape) != wanted:
            raise ValueError(f"expected a matrix of shape {wanted}, got {tuple(matrix.shape)}")
        if matrix.is_complex() and not self.complex:
            raise TypeError(f"expected a real matrix for a real {type(self.spec).__name__}, got {matrix.dtype}")
        return matrix.detach().to(self.some_numbers())

    def penalty(self) -> Tensor:
        """A soft constraint to be added to the loss; zero for most structures."""
        parameter = next(self.parameters(), None)
        return (self.some_numbers().real if parameter is None else parameter).new_zeros(())

    def extra_repr(self) -> str:
        shape = self.shape
        field = "complex" if shape.complex else "real"
        return f"{self.spec!r}, {shape.gates} x {shape.out_size} x {shape.in_size} {field}"


def _row_norms(matrix: Tensor) -> Tensor:
    """Norms along the last axis, real."""
    norms: Tensor = torch.linalg.vector_norm(matrix, dim=-1)
    return norms
