"""Elman's simple recurrent cell, and with modReLU the cell of the unitary and Kronecker nets."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice
from slimrnn._fields import as_complex
from slimrnn.cells.base import Cell, Matvec, State

NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "identity": lambda z: z,
}


class ElmanCell(Cell):
    """h_t = f(U x_t + W h_{t−1} + b) for f = tanh, relu, identity (lecture, Elman 1990), and

    h_t = modReLU(U x_t + W h_{t−1}),   modReLU(z) = z/|z| · max(|z| + b, 0)   (Arjovsky et al. 2016).

    modReLU's state is complex unless `complex=False`; tanh and relu are real; identity may be either."""

    gates = 1

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        nonlinearity: str = "tanh",
        complex: bool | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        check_choice("nonlinearity", nonlinearity, [*NONLINEARITIES, "modrelu"])
        if complex and nonlinearity in ("tanh", "relu"):
            raise ValueError(f"expected complex=True only with 'modrelu' or 'identity', got {nonlinearity!r}")
        super().__init__(hidden_size, complex=nonlinearity == "modrelu" if complex is None else complex)
        self.nonlinearity = nonlinearity
        # modReLU's bias moves the modulus, so it is real whatever the state is.
        pair = self.complex and nonlinearity != "modrelu"
        shape = (1, hidden_size, 2) if pair else (1, hidden_size)
        initial = nn.Parameter(torch.zeros(shape, dtype=dtype, device=device)) if bias else None
        self.register_parameter("bias", initial)

    def input_bias(self) -> Tensor | None:
        if self.bias is None or self.nonlinearity == "modrelu":
            return None
        return as_complex(self.bias) if self.complex else self.bias

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State, own: Tensor | None = None) -> State:
        z = (wx_BGH + matvec(state[0]))[..., 0, :]
        if self.nonlinearity == "modrelu":
            return (modrelu(z, self.native_parameters() if own is None else own),)
        return (NONLINEARITIES[self.nonlinearity](z),)

    @property
    def native_name(self) -> str | None:
        return "identity" if self.nonlinearity == "modrelu" and self.bias is None else self.nonlinearity

    def native_parameters(self) -> Tensor | None:
        return self.bias[0] if self.bias is not None and self.nonlinearity == "modrelu" else None

    def extra_repr(self) -> str:
        field = ", complex=True" if self.complex else ""
        return f"{self.hidden_size}, nonlinearity={self.nonlinearity!r}{field}"


def modrelu(z: Tensor, bias: Tensor | None) -> Tensor:
    """z/|z| · max(|z| + b, 0), and 0 at z = 0; without a bias it is the identity."""
    return z if bias is None else torch.sgn(z) * torch.relu(z.abs() + bias)
