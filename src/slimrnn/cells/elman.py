"""Elman's simple recurrent cell, and with modReLU the cell of the unitary and Kronecker nets."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from slimrnn._checks import check_choice, check_number
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

    modReLU's state is complex unless `complex=False`; tanh and relu are real; identity may be either. `modrelu_bias` is
    the initial b of modReLU: at 0 the cell is linear, below 0 it takes states of small modulus for zero."""

    gates = ("h",)

    def __init__(
        self,
        hidden_size: int,
        bias: bool = True,
        *,
        nonlinearity: str = "tanh",
        complex: bool | None = None,
        modrelu_bias: float = 0.0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        check_choice("nonlinearity", nonlinearity, [*NONLINEARITIES, "modrelu"])
        if complex and nonlinearity in ("tanh", "relu"):
            raise ValueError(f"expected complex=True only with 'modrelu' or 'identity', got {nonlinearity!r}")
        check_number("modrelu_bias", modrelu_bias)
        if modrelu_bias and (nonlinearity != "modrelu" or not bias):
            given = repr(nonlinearity) if bias else "bias=False"
            raise ValueError(f"expected modrelu_bias only with 'modrelu' and a bias, got {modrelu_bias} with {given}")
        field = nonlinearity == "modrelu" if complex is None else complex
        super().__init__(hidden_size, bias, complex=field, dtype=dtype, device=device)
        self.nonlinearity = nonlinearity
        if modrelu_bias and self.bias is not None:
            nn.init.constant_(self.bias, modrelu_bias)
        if bias and field and nonlinearity != "modrelu":  # modReLU's moves the modulus, so it is real
            self.bias = nn.Parameter(torch.zeros((1, hidden_size, 2), dtype=dtype, device=device))

    def input_bias(self) -> Tensor | None:
        if self.bias is None or self.nonlinearity == "modrelu":
            return None
        return as_complex(self.bias) if self.complex else self.bias

    def step(self, wx_BGH: Tensor, matvec: Matvec, state: State) -> State:
        z = (wx_BGH + matvec(state[0]))[..., 0, :]
        if self.nonlinearity == "modrelu":
            return (modrelu(z, None if self.bias is None else self.bias[0]),)
        return (NONLINEARITIES[self.nonlinearity](z),)

    def extra_repr(self) -> str:
        field = ", complex=True" if self.complex else ""
        return f"{self.hidden_size}, nonlinearity={self.nonlinearity!r}{field}"


def modrelu(z: Tensor, bias: Tensor | None) -> Tensor:
    """z/|z| · max(|z| + b, 0), and 0 at z = 0; without a bias it is the identity."""
    return z if bias is None else torch.sgn(z) * torch.relu(z.abs() + bias)
