"""RecurrentStack: layers on layers, one or two directions, ragged input; the base of RNN, GRU and LSTM.

Shape suffixes: T time, B batch, I input width, H hidden units. D is the number of directions.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from slimrnn._checks import check_probability
from slimrnn._fields import field_dtype, side_by_side, some_parameter
from slimrnn.cells.base import Cell, State
from slimrnn.cells.leaky import Leaky
from slimrnn.layers.group import LayerGroup
from slimrnn.layers.inputs import (
    check_input,
    check_lengths,
    check_sizes,
    check_state,
    full_precision,
    nested_as,
    packed,
)
from slimrnn.layers.options import (
    DEFAULTS,
    HELP,
    OF_LAYERS,
    OF_STACKS,
    StackOptions,
    as_written,
    changed,
    check_flag,
    resolve,
    structure_of_each,
)
from slimrnn.layers.parameter_groups import parameter_groups
from slimrnn.layers.recurrent_layer import RecurrentLayer
from slimrnn.layers.resets import renewed, resets_of
from slimrnn.layers.streaming import current_stream, lean_step
from slimrnn.layers.tokens import TokenInput, is_tokens
from slimrnn.layers.torch_interface import TorchInterface
from slimrnn.ops.onnx_exports import check_no_noise
from slimrnn.ops.reference import Resets, valid_steps
from slimrnn.structures import Dense, Structure

if TYPE_CHECKING:
    from typing_extensions import Unpack

States = Tensor | tuple[Tensor, ...]  # as torch: h_n, or (h_n, c_n)


class RecurrentStack(TorchInterface, TokenInput):
    __doc__ = f"""Stacked, possibly bidirectional recurrent layers with torch.nn's interface.

    Beyond torch's own arguments:
    {HELP}
    """

    structure: Structure | tuple[Structure, ...]
    residual: bool
    leak: Leaky | None
    delays: tuple[int, ...]
    zoneout: float | tuple[float, ...]
    mask_per_gate: bool
    weight_drop: float
    checkpoint_every: int | None
    max_row_norm: float | None
    as_pairs: bool = False  # a complex state as (L·D, B, H, 2) real numbers: for runtimes that have no others

    def __init__(
        self,
        make_cell: Callable[..., Cell],
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Unpack[StackOptions],
    ) -> None:
        super().__init__()
        check_sizes(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        check_probability("dropout", dropout)
        for name, flag in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            check_flag(name, flag)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout, self.bidirectional = dropout, bidirectional
        resolved = resolve(options)
        for name, value in resolved.items():
            if name not in ("backend", "device", "dtype"):  # the layers have these
                setattr(self, name, value)
        if hidden_size % len(self.delays):
            raise ValueError(f"expected hidden_size divisible by the {len(self.delays)} delays, got {hidden_size}")
        for name, needs_two in (("dropout", dropout), ("residual", self.residual)):
            if needs_two and num_layers == 1:
                warnings.warn(f"{name} acts between stacked layers: expected num_layers > 1, got 1", stacklevel=4)
        self.embedding = None
        if self.vocabulary is not None:
            place = {"dtype": resolved["dtype"], "device": resolved["device"]}
            self.embedding = nn.Embedding(self.vocabulary, input_size, **place)
        self.layers = nn.ModuleList()
        count = num_layers * self.num_directions
        recurrent = structure_of_each("structure", self.structure, count)
        inward = structure_of_each("input_structure", self.input_structure, count)
        self.structure, self.input_structure = as_written(recurrent), as_written(inward)
        for k, (structure, input_structure) in enumerate(zip(recurrent, inward, strict=True)):
            width = input_size if k < self.num_directions else self.output_size
            own = resolved | {"structure": structure, "input_structure": input_structure}
            groups = list(self._build(make_cell, width, own))
            self.layers.append(groups[0] if len(groups) == 1 else LayerGroup(groups))

    if not TYPE_CHECKING:  # to which a class that defines it may have any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            if name in OF_LAYERS and "layers" in self.__dict__.get("_modules", ()):  # not while it is made
                value = changed(name, value, self)
                for core in self.cores:
                    core.set_options({name: value})
            super().__setattr__(name, value)

    def _build(self, make_cell: Callable[..., Cell], width: int, resolved: dict[str, Any]) -> Iterator[RecurrentLayer]:
        """One layer for every delay, each with its share of the units."""
        groups, depth = len(self.delays), resolved["transition_depth"]
        leaks = [None] * groups if self.leak is None else self.leak.split(groups, self.hidden_size)
        options: Any = {name: value for name, value in resolved.items() if name not in OF_STACKS}
        place = {"dtype": resolved["dtype"], "device": resolved["device"]}
        for delay, leak in zip(self.delays, leaks, strict=True):
            cell, *deeper = (make_cell(self.hidden_size // groups, bias=self.bias, **place) for _ in range(depth))
            yield RecurrentLayer(width, cell, deeper=deeper, delay=delay, **options | {"leak": leak})

    # --- sizes ------------------------------------------------------------------------------------------

    @property
    def num_directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def cell(self) -> Cell:
        """The first layer's cell; all are of one kind."""
        return self._at(0).cell

    @property
    def output_size(self) -> int:
        """Width of the output: hidden_size, twice that for a complex state, and twice for two directions."""
        return self.num_directions * self.hidden_size * (2 if self.cell.complex else 1)

    @property
    def num_parameters(self) -> int:
        """Real numbers held, a complex one counting twice."""
        return sum(p.numel() for p in self.parameters())

    @property
    def state_size(self) -> int:
        """Width of a layer's state: hidden_size, or with delays or a skip that of a line of the last states."""
        return self._at(0).state_size

    @property
    def cores(self) -> list[RecurrentLayer]:
        """The layers, in the order of torch's states; with several delays, the groups of each one after the other."""
        found = (self._at(k) for k in range(len(self.layers)))
        return [core for layer in found for core in (layer.cores if isinstance(layer, LayerGroup) else [layer])]

    def layer(self, index: int) -> RecurrentLayer:
        """Layer number depth · directions + direction, as torch numbers its states."""
        found = self._at(index)
        if isinstance(found, LayerGroup):
            raise ValueError(f"expected a layer with one delay, got {self.delays}: see `cores`")
        return found

    def _at(self, index: int) -> RecurrentLayer | LayerGroup:
        layers: Any = self._modules["layers"]
        found = list(layers._modules.values())[index]  # a fraction of the cost of self.layers[index]
        assert isinstance(found, (RecurrentLayer, LayerGroup))  # what __init__ put there
        return found

    # --- whole sequences --------------------------------------------------------------------------------

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: States | None = None,
        *,
        lengths: Tensor | Sequence[int] | None = None,
        resets: Tensor | None = None,
        reset_state: States | None = None,
    ) -> tuple[Any, Any]:
        """As torch.nn: `output, h_n = rnn(x, h_0)`; `lengths=` for a padded ragged batch, which may also come as a
        PackedSequence or as a nested tensor (B, T, I); the output then comes in the same form. With `vocabulary` or
        `one_hot`, input may be integers, without the axis I: `rnn(tokens)` is `rnn(rnn.vectors(tokens))`.

        resets -- booleans (T, B), or (B, T) with batch_first, or (T) of one sequence: where one is true, the sequence
        begins anew, and its state *before* that step is `reset_state` (as hx; by default the initial state, learned or
        zero). No gradient passes a reset.

        Beyond a sequence's length its state stays and its output is zero. A complex state's output is its real and
        imaginary parts side by side; h_n is complex."""
        if isinstance(input, PackedSequence) or (isinstance(input, Tensor) and input.is_nested):
            if lengths is not None:
                raise ValueError(f"expected no lengths with a {type(input).__name__}, which has its own, got both")
            if isinstance(input, PackedSequence):
                return self._forward_packed(input, hx, resets, reset_state)
            dims = 2 if self.takes_tokens and is_tokens(input) else 3
            rows, last = self._forward_packed(packed(input, dims), hx, resets, reset_state)
            return nested_as(rows, input), last
        x = self._checked(input, (2, 3), "input")
        batched = x.dim() == 3
        if not batched:
            x = x.unsqueeze(1)
        elif self.batch_first:
            x = x.transpose(0, 1)
        time, batch = x.shape[:2]
        if time == 0:
            raise RuntimeError("expected sequences of at least one step, got zero length")
        ragged = None if lengths is None else check_lengths(lengths, time, batch, x.device)
        anew = resets_of(self, resets, reset_state, time, batch, batched, ragged)
        output, states = self._run(x, self.states_of(hx, batch, batched), ragged, anew)
        if not batched:
            output = output.squeeze(1)
        elif self.batch_first:
            output = output.transpose(0, 1)
        return output, self.joined(states, batched)

    def _forward_packed(
        self, packed: PackedSequence, hx: States | None, resets: Tensor | None, reset_state: States | None
    ) -> tuple[PackedSequence, States]:
        rows = self._checked(packed.data, (2,), "packed input")
        x, lengths = pad_packed_sequence(packed._replace(data=rows))  # in the user's order, as hx is
        ragged = lengths.to(x.device)
        anew = resets_of(self, resets, reset_state, len(x), len(lengths), True, ragged)
        output, states = self._run(x, self.states_of(hx, len(lengths), True), ragged, anew)
        order = packed.sorted_indices
        if order is not None:
            output, lengths = output.index_select(1, order), lengths.index_select(0, order.to(lengths.device))
        data = pack_padded_sequence(output, lengths).data
        return PackedSequence(data, packed.batch_sizes, order, packed.unsorted_indices), self.joined(states, True)

    def _run(
        self, x_TBI: Tensor, states: list[State], lengths: Tensor | None, resets: list[Resets] | None = None
    ) -> tuple[Tensor, list[State]]:
        if lengths is not None:  # whatever the padding holds, even NaN, stays outside
            x_TBI = x_TBI.masked_fill(~valid_steps(x_TBI.shape[0], lengths), 0)
        if self.dropout and self.training:
            check_no_noise()
        last: list[State] = []
        vectors_VI = None
        with full_precision(x_TBI.device.type):
            if is_tokens(x_TBI):
                self._check_range(x_TBI)
                x_TBI, vectors_VI = self._for_first_layers(x_TBI)
            for depth in range(self.num_layers):
                below = functional.dropout(x_TBI, self.dropout, self.training) if depth else x_TBI
                outputs = []
                for direction in range(self.num_directions):
                    k = depth * self.num_directions + direction
                    vectors, anew = None if depth else vectors_VI, None if resets is None else resets[k]
                    h_TBH, state = self._at(k)(below, states[k], lengths, direction == 1, vectors, anew)
                    outputs.append(h_TBH)
                    last.append(state)
                output = torch.cat(outputs, -1) if len(outputs) > 1 else outputs[0]
                x_TBI = output + x_TBI if self.residual and depth else output
        return x_TBI, last

    # --- step by step -----------------------------------------------------------------------------------

    def step(self, x_t: Tensor, state: States | None = None, *, reset: Tensor | None = None) -> tuple[Tensor, States]:
        """Streaming: `y_t, state = rnn.step(x_t, state)` with x_t of shape (B, I) or (I), or tokens (B) or ().

        reset -- booleans (B), or () of one sequence: where one is true, the step begins with the initial state.

        Without autograd it runs on packed weights, which are compared with the layer's own at every step, however those
        were changed; `fixed_weights` saves that. Of more than 1 MiB of weights, single numbers written through `.data`
        or numpy may be seen some steps later."""
        if self.takes_tokens:
            x_t = self._step_vectors(x_t)
        if reset is not None:
            state = renewed(self, x_t, state, reset)
        stepped = lean_step(self, x_t, state)
        if stepped is not None:
            return stepped
        self._check_step()
        x = check_input(x_t, (1, 2), self.input_size, self._dtype, "x_t")
        batched = x.dim() == 2
        x = x if batched else x.unsqueeze(0)
        states = self.states_of(state, x.shape[0], batched)
        with full_precision(x.device.type):
            for depth in range(self.num_layers):
                below = functional.dropout(x, self.dropout, self.training) if depth else x
                layer = self._at(depth)
                states[depth] = layer.step(below, states[depth])
                output = side_by_side(layer.shown(states[depth]))
                x = output + x if self.residual and depth else output
        return (x if batched else x.squeeze(0)), self.joined(states, batched)

    def _check_step(self) -> None:
        if self.bidirectional:
            raise RuntimeError("expected one direction for step, got a bidirectional layer, which needs the future")
        for name in ("recurrent_dropout", "weight_drop"):
            if any(core.training and getattr(core, name) for core in self.cores):
                raise RuntimeError(f"expected eval() for step with {name}, whose mask spans a sequence, got training")

    @contextlib.contextmanager
    def fixed_weights(self) -> Iterator[None]:
        """`with rnn.fixed_weights():` is your promise that no weight and no attribute changes inside.

        There `step` does not look for changes, which is faster, and does not see any."""
        with torch.no_grad():
            stream = current_stream(self)
        stream.fixed += 1
        try:
            yield
        finally:
            stream.fixed -= 1

    def initial_state(self, batch: int | None = None) -> States:
        """The state before the first step, as `hx` and `step` take it; without `batch`, for unbatched input."""
        if batch is not None and (not isinstance(batch, int | torch.SymInt) or batch < 0):
            raise ValueError(f"expected batch to be a non-negative int, got {batch!r}")
        states = [self._at(k).initial_state(1 if batch is None else batch) for k in range(len(self.layers))]
        return self.joined(states, batch is not None)

    def last_output(self, state: States) -> Tensor | None:
        """The output after the last step, (B, H), from the state after it; None where that does not tell: with two
        directions, in residual stacks, and where hooks may have changed the output."""
        hooked = any(module._forward_hooks for module in (self, self._at(-1), *self.cores))
        if hooked or self.bidirectional or (self.residual and self.num_layers > 1) or self.as_pairs:
            return None
        h_n = state if isinstance(state, Tensor) else state[0]
        return side_by_side(self._at(-1).shown((h_n[-1],)))

    @property
    def _device(self) -> str:
        return some_parameter(self.layers).device.type

    def states_of(self, hx: States | None, batch: int, batched: bool) -> list[State]:
        """The states of each layer."""
        count = len(self.layers)
        if hx is None:
            return [self._at(k).initial_state(batch) for k in range(count)]
        shape = (count, *([batch] if batched else []), self.state_size, *([2] if self.as_pairs else []))
        dtype = field_dtype(self._dtype, self.cell.complex and not self.as_pairs)
        parts = check_state(hx, self.cell.states, shape, dtype)
        if not batched:
            parts = tuple(part.unsqueeze(1) for part in parts)
        return [tuple(part[k] for part in parts) for k in range(count)]

    def joined(self, states: list[State], batched: bool) -> States:
        """Per-layer states as torch returns them: (L·D, B, H), and a pair of these for the LSTM."""
        joined = tuple(torch.stack(part) for part in zip(*states, strict=True))
        if not batched:
            joined = tuple(part.squeeze(1) for part in joined)
        return joined if len(joined) > 1 else joined[0]

    # --- matrices ---------------------------------------------------------------------------------------

    def recurrent_matrices(self) -> list[Tensor]:
        """The recurrent matrices written out, (G, n, n) in torch's gate order, for each layer · direction.

        Those of the first transition, which with `delays` act on the state so many steps before."""
        with full_precision(self._device):
            found, groups = [core.recurrent.dense() for core in self.cores], len(self.delays)
            if groups == 1:
                return found
            gates = self.cell.matrices
            rows = [found[k : k + groups] for k in range(0, len(found), groups)]
            return [torch.stack([torch.block_diag(*(w[g] for w in row)) for g in range(gates)]) for row in rows]

    def penalty(self) -> Tensor:
        """Soft constraints on the recurrent matrices (KRU eq. 7), to be weighted and added to the loss."""
        with full_precision(self._device):
            return torch.stack([map.penalty() for core in self.cores for map in core.maps]).sum()

    def constrain_(self) -> None:
        """Apply `max_row_norm` to the recurrent and input matrices; call it after each optimizer step."""
        if self.max_row_norm is not None:
            for core in self.cores:
                for map in (*core.maps, core.input):
                    map.clip_rows_(self.max_row_norm)

    def parameter_groups(self, lr: float, recurrent_rate: float = 0.1) -> list[dict[str, Any]]:
        """For an optimizer: the recurrent matrices at lr · recurrent_rate, the other parameters at lr.

        `slimrnn.parameter_groups(model, lr, recurrent_rate)` gives those of a whole model."""
        return parameter_groups(self, lr, recurrent_rate)

    def __getstate__(self) -> dict[str, Any]:
        """Without packed weights, which belong to this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_stream"}

    def __repr__(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}", f"structure={self.structure!r}"]
        if self.input_structure != Dense():
            parts.append(f"input_structure={self.input_structure!r}")
        described = self._describe_cell()
        parts += [described] if described else []
        for name, default in DEFAULTS.items():
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        parts.append(f"backend={self.backend!r}")
        if self.runs_as != self.backend or self.backend == "torch":
            parts.append(f"runs_as={self.runs_as!r}")
        parts.append(f"parameters={self.num_parameters:,}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _describe_cell(self) -> str:
        """Options of the cell, as they are written."""
        return self.cell.extra_repr().partition(", ")[2]
