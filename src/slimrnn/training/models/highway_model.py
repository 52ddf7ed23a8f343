"""A net without recurrence: a dense layer, highway layers and a linear read-out.

Shape suffixes: B vectors of a batch, I input width, H width of the layers, O output width.
"""

from __future__ import annotations

from dataclasses import MISSING, fields

from torch import Tensor, nn
from torch.nn import functional

from slimrnn import Highway
from slimrnn.errors import ConfigError
from slimrnn.layers.affine import Affine
from slimrnn.layers.highway_layer import NONLINEARITIES
from slimrnn.training.config import ModelConfig
from slimrnn.training.models.sequence_model import refuse_foreign, structure_from

TAKEN = ("cell", "hidden", "structure", "rank", "tied", "blocks", "factors", "layers", "nonlinearity", "dropout")


class HighwayModel(nn.Module):
    """f(U x + c), highway layers, and a read-out; batch normalisation after U and after the layers' matrices.

    The read-out is not normalised. `input_dropout` acts on x, `output_dropout` on what is read out; the dropout of the
    configuration on what the highway layers' matrices multiply."""

    def __init__(
        self,
        input_size: int,
        output_size: int,
        config: ModelConfig,
        *,
        batch_norm: bool = False,
        transform_bias: float = -1.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _refuse_unused(config)
        self.nonlinearity, self.input_dropout, self.output_dropout = config.nonlinearity, input_dropout, output_dropout
        self.highway = Highway(
            config.hidden,
            config.layers,
            structure=structure_from(config),
            nonlinearity=config.nonlinearity,
            transform_bias=transform_bias,
            batch_norm=batch_norm,
            dropout=config.dropout,
        )
        self.input = nn.Linear(input_size, config.hidden, bias=not batch_norm)
        self.norm = nn.BatchNorm1d(config.hidden) if batch_norm else nn.Identity()
        self.readout = Affine(config.hidden, output_size)
        for linear in (self.input, self.readout):  # as in the low-rank authors' code
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def forward(self, inputs: Tensor, state: None = None, lengths: None = None) -> tuple[Tensor, None]:
        """Vectors (1, B, I), a sequence of one step each, to (B, O); there is no state to go on from."""
        if len(inputs) != 1:
            raise ValueError(f"expected inputs of one step for a net without recurrence, got {len(inputs)}")
        x_BI = functional.dropout(inputs.squeeze(0), self.input_dropout, self.training)
        h_BH = self.highway(NONLINEARITIES[self.nonlinearity](self.norm(self.input(x_BI))))
        return self.readout(functional.dropout(h_BH, self.output_dropout, self.training)), None


def _refuse_unused(config: ModelConfig) -> None:
    """Options of recurrent layers."""
    if config.cell != "highway":
        raise ConfigError(f"expected cell highway for a net without recurrence, got {config.cell}")
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name not in TAKEN and field.default is not MISSING and value != field.default:
            raise ConfigError(
                f"expected {field.name} only with recurrent layers, got {field.name} {value} with highway"
            )
    refuse_foreign(config)
