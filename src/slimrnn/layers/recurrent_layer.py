"""One recurrent layer in one direction: a cell, the map of its state and the map of its input.

Shape suffixes: T time, B batch, I input width, V vocabulary, G gates, H hidden units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from slimrnn._fields import as_complex, field_dtype, side_by_side, some_parameter
from slimrnn._hooks import renew
from slimrnn.cells.base import Cell, State
from slimrnn.cells.leaky import leaked
from slimrnn.cells.zoneout import zoned
from slimrnn.errors import ExportError
from slimrnn.layers import delays, torch_scan
from slimrnn.layers.chosen_backend import ChosenBackend
from slimrnn.layers.drawn import NOTHING, Drawn, draw
from slimrnn.layers.input_product import input_product, look_up, token_products
from slimrnn.layers.native_scan import native_program, native_scan
from slimrnn.layers.options import OF_LAYERS, StackOptions, resolve, structure_of_each
from slimrnn.layers.traced import numbered, steps_of
from slimrnn.layers.transition import Transition, masked_matvec
from slimrnn.ops import native, reference
from slimrnn.ops.noise import uniform
from slimrnn.ops.onnx_exports import check_exporter
from slimrnn.ops.operators import traced
from slimrnn.ops.reference import Resets
from slimrnn.ops.stepping import Stepper
from slimrnn.ops.versions import Snapshot
from slimrnn.structures import Structure
from slimrnn.structures.base import StructuredMap
from slimrnn.tracing import Traced

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RecurrentLayer(ChosenBackend):
    """state_t = cell(U x_t + b, h ↦ W h, state_{t−1}), with W and U of any structure.

    deeper -- further cells that the state passes through within the step, each with its own map and no input (lecture,
    figure 18 b);
    delay -- the cell sees state_{t−delay} instead of state_{t−1};
    options -- as of a stack, but for those that concern the stack as a whole."""

    initial: Tensor | None
    recurrent_dropout: float | Sequence[float]
    mask_per_gate: bool
    zoneout: tuple[float, ...] | None  # of each state
    weight_drop: float
    checkpoint_every: int | None
    make_stepper: Callable[[], Stepper | None] | None = None  # of a subclass that has its own

    def __init__(
        self,
        input_size: int,
        cell: Cell,
        *,
        deeper: Sequence[Cell] = (),
        delay: int = 1,
        **options: Unpack[StackOptions],
    ) -> None:
        super().__init__()
        resolved = resolve(options)
        (structure,) = structure_of_each("structure", resolved["structure"], 1)
        (input_structure,) = structure_of_each("input_structure", resolved["input_structure"], 1)
        leak = resolved["leak"]
        hidden, field = cell.hidden_size, cell.complex
        place = {"dtype": resolved["dtype"], "device": resolved["device"]}

        def build(structure: Structure, width: int, matrices: int = cell.matrices) -> StructuredMap:
            norm = resolved["weight_norm"]
            return structure.build(hidden, width, matrices, complex=field, weight_norm=norm, **place)

        self.cell, self.number = cell, numbered(self)
        self.recurrent = build(structure, hidden)
        self.input = build(input_structure, input_size, len(cell.gates))
        self.deeper_cells = nn.ModuleList(deeper)
        self.deeper_maps = nn.ModuleList([build(structure, hidden) for _ in deeper])
        self.leak = None if leak is None else leak.build(hidden, **place)
        self.delay, self.skip = delay, resolved["skip"]
        self.skipped = None if self.skip is None else build(structure, hidden, len(cell.gates))  # adds to U x
        self.set_options({name: resolved[name] for name in OF_LAYERS})
        shape = (cell.states, hidden, 2) if field else (cell.states, hidden)
        start = nn.Parameter(torch.zeros(shape, **place)) if resolved["learn_initial_state"] else None
        self.register_parameter("initial", start)
        self.backend = resolved["backend"]

    def set_options(self, checked: Mapping[str, Any]) -> None:
        """Those that are no part of its weights and connections."""
        given = dict(checked)
        if "zoneout" in given:
            given["zoneout"] = _rates(given["zoneout"], self.cell.states)
        for name, value in given.items():
            setattr(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self.number = numbered(self)
        self.choose_backend_again()

    @property
    def transitions(self) -> list[Transition]:
        """What the state passes through in a step, one after the other."""
        first, cells = Transition(self.cell, self.recurrent), self.deeper_cells
        if not len(cells):
            return [first]
        deeper: Any = zip(cells, self.deeper_maps, strict=True)
        return [first, *(Transition(cell, inner) for cell, inner in deeper)]

    @property
    def maps(self) -> list[StructuredMap]:
        """Of the state: those of the transitions and, where there is one, of the skip."""
        return [*(transition.recurrent for transition in self.transitions), *([self.skipped] if self.skipped else [])]

    @property
    def line(self) -> int:
        """How many of the last states it needs to go on."""
        return max(self.delay, self.skip or 1)

    @property
    def state_size(self) -> int:
        """Numbers of a state: hidden units, times the states in the line."""
        return self.cell.hidden_size * self.line

    def initial_state(self, batch: int) -> State:
        """Zeros, or the learned state, for every sequence of the batch."""
        if self.initial is not None:
            learned = as_complex(self.initial) if self.cell.complex else self.initial
            return tuple(row.repeat(self.line).expand(batch, -1) for row in learned)
        some = some_parameter(self)
        dtype = field_dtype(some.dtype, self.cell.complex)
        zero = torch.zeros(batch, self.state_size, dtype=dtype, device=some.device)
        return (zero,) * self.cell.states

    # --- whole sequences --------------------------------------------------------------------------------

    def forward(
        self,
        x_TBI: Tensor,
        state: State,
        lengths_B: Tensor | None = None,
        reverse: bool = False,
        vectors_VI: Tensor | None = None,
        resets: Resets | None = None,
    ) -> tuple[Tensor, State]:
        """Outputs (T, B, H), or (T, B, 2H) of a complex state: real and imaginary parts side by side; last state.

        x may be tokens (T, B, 1), integers that stand for `vectors_VI`, or without those for one-hot vectors. Resets
        beyond the length of a sequence must have been removed."""
        self.renew_cells()
        drawn = draw(self, x_TBI)
        if not x_TBI.is_floating_point():
            drawn = drawn._replace(table=self.token_table(vectors_VI))
        if lengths_B is not None:  # U x of the padding is a sum's zero share, whatever stands there
            x_TBI = x_TBI.masked_fill(~reference.valid_steps(x_TBI.shape[0], lengths_B), 0)
        if drawn.x_mask is not None:
            x_TBI = x_TBI * drawn.x_mask
        if self.line == 1:
            return self._run(x_TBI, state, drawn, lengths_B, reverse, resets)
        if resets is not None:
            return self._between_resets(x_TBI, state, drawn, lengths_B, resets)
        if reverse:
            x_TBI = delays.turned(x_TBI, lengths_B)
        output, state = self._delayed(x_TBI, state, drawn, lengths_B)
        return delays.turned(output, lengths_B) if reverse else output, state

    def _between_resets(
        self, x_TBI: Tensor, state: State, drawn: Drawn, lengths_B: Tensor | None, resets: Resets
    ) -> tuple[Tensor, State]:
        """With a line of states, all of which are reset: one call for the steps from a reset of any sequence to the
        next."""
        if traced() or torch.compiler.is_exporting():
            raise ExportError(
                "expected no resets with delays or a skip to export or trace, got some, which would be fixed where "
                "they are now: export single steps (step=True) and begin with initial_state() anew"
            )
        outputs, starts = [], [0, *resets.at_TB[1:].any(1).nonzero().flatten().add(1).tolist()]
        for start, stop in pairwise([*starts, len(x_TBI)]):
            lengths = None if lengths_B is None else (lengths_B - start).clamp(0, stop - start)
            drawn_here = drawn if drawn.seed is None else drawn._replace(seed=drawn.seed + start)  # other noise
            output, state = self._delayed(x_TBI[start:stop], resets.before(start, state), drawn_here, lengths)
            outputs.append(output)
        return torch.cat(outputs), state

    def _delayed(self, x_TBI: Tensor, state: State, drawn: Drawn, lengths_B: Tensor | None) -> tuple[Tensor, State]:
        delayed = self._dilated if self.skip is None else self._skipping
        return delayed(x_TBI, state, drawn, lengths_B)

    def _dilated(self, x_TBI: Tensor, state: State, drawn: Drawn, lengths_B: Tensor | None) -> tuple[Tensor, State]:
        mask = None if drawn.h_mask is None else torch.cat([drawn.h_mask] * self.delay)

        def run(x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
            return self._run(x, state, drawn._replace(h_mask=mask), lengths, False)

        return delays.interleaved(run, self.delay, x_TBI, state, lengths_B)

    def _skipping(self, x_TBI: Tensor, state: State, drawn: Drawn, lengths_B: Tensor | None) -> tuple[Tensor, State]:
        if traced():
            raise ExportError(
                "expected a layer without skip for torch.jit.trace, got skip, whose pieces would be fixed for this "
                "length: export single steps, slimrnn.export(..., step=True)"
            )
        skip, skipped, first_step = self.skip, self.skipped, 0
        assert skip is not None
        assert skipped is not None
        wx_TBGH, prepared = self.input_product(x_TBI, drawn.table), skipped.prepare()

        def run(wx: Tensor, seen: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
            nonlocal first_step
            wx = wx + masked_matvec(skipped, seen, drawn.h_mask, prepared=prepared)
            output, last = self.scan(None, wx, state, drawn, lengths, False, first_step)
            first_step += len(wx)
            width = self.cell.hidden_size
            return torch.complex(output[..., :width], output[..., width:]) if self.cell.complex else output, last

        output, last = delays.with_skips(run, skip, wx_TBGH, state, lengths_B)
        return side_by_side(output), last

    def _run(
        self,
        x_TBI: Tensor,
        state: State,
        drawn: Drawn,
        lengths_B: Tensor | None,
        reverse: bool,
        resets: Resets | None = None,
    ) -> tuple[Tensor, State]:
        fixes = traced() or torch.compiler.is_exporting()  # the number of segments
        if self.checkpoint_every is None or not torch.is_grad_enabled() or fixes:
            return self.scan(x_TBI, None, state, drawn, lengths_B, reverse, 0, resets)
        return self._scan_in_segments(self.checkpoint_every, x_TBI, state, drawn, lengths_B, reverse, resets)

    def _scan_in_segments(
        self,
        k: int,
        x_TBI: Tensor,
        state: State,
        drawn: Drawn,
        lengths_B: Tensor | None,
        reverse: bool,
        resets: Resets | None,
    ) -> tuple[Tensor, State]:
        """Segments of k steps, of which only the states between them are kept: backward runs each again. The same
        numbers, in the memory of one segment's history."""
        anew = () if resets is None else (resets.at_TB, *resets.state)
        given = [t for t in (x_TBI, *drawn[:3], lengths_B, *state, *anew) if t is not None]
        unchanged = None if torch.compiler.is_compiling() else Snapshot(lambda: [*given, *self._read_in_scan()])

        def scan(*arguments: Any) -> tuple[Tensor, State]:
            if unchanged is not None:
                unchanged.check()
            return self.scan(*arguments)

        starts = range(0, len(x_TBI), k)
        outputs: list[Tensor] = []
        for start in reversed(starts) if reverse else starts:
            piece = x_TBI[start : start + k]
            lengths = None if lengths_B is None else (lengths_B - start).clamp(0, len(piece))
            here = None if resets is None else resets.of_steps(start, start + k)
            arguments = (piece, None, state, drawn, lengths, reverse, start, here)
            output, state = checkpoint(scan, *arguments, use_reentrant=False, preserve_rng_state=False)
            outputs.append(output)
        return torch.cat(outputs[::-1] if reverse else outputs), state

    def _read_in_scan(self) -> list[Tensor]:
        """Parameters, the fixed leak, permutations; not what torch.nn.utils.parametrizations change as they go."""
        fixed = [] if self.leak is None else list(self.leak.buffers())
        return [*self.parameters(), *fixed, *(b for b in self.buffers() if not b.is_floating_point())]

    def scan(
        self,
        x_TBI: Tensor | None,
        wx_TBGH: Tensor | None,
        state: State,
        drawn: Drawn = NOTHING,
        lengths_B: Tensor | None = None,
        reverse: bool = False,
        first_step: int = 0,
        resets: Resets | None = None,
    ) -> tuple[Tensor, State]:
        """Over inputs, or over their products; `first_step` is the number of the first in the whole sequence."""
        check_exporter()
        given = wx_TBGH if x_TBI is None else x_TBI if drawn.table is None else drawn.table
        assert given is not None
        backend = self.backend
        if backend == "torch" and resets is None and x_TBI is not None and torch_scan.can_serve(x_TBI):
            torch_scan.check_layer(self)  # again: it may have changed since
            return torch_scan.run(self, x_TBI, state, lengths_B, reverse)
        if backend == "native":
            native.tell_of_half_precision(given)
        if backend == "native" and native.can_serve(given.real if given.is_complex() else given):
            program = native_program(self, drawn.maps)
            if program is not None:
                return native_scan(self, program, x_TBI, wx_TBGH, state, drawn, lengths_B, reverse, first_step, resets)
        if x_TBI is not None:
            wx_TBGH = self.input_product(x_TBI, drawn.table)
        assert wx_TBGH is not None
        steps = range(first_step, first_step + len(wx_TBGH))
        advance = self.advance(drawn, reversed(steps) if reverse else steps, reverse)
        output, last = reference.scan(advance, wx_TBGH, state, lengths_B, reverse, resets)
        return side_by_side(output), last

    # --- one step ---------------------------------------------------------------------------------------

    def step(self, x_BI: Tensor, state: State) -> State:
        """One time step."""
        check_exporter()
        if self.backend == "native":
            native.tell_of_half_precision(x_BI)
        self.renew_cells()
        wx, width = self.input_product(x_BI), self.cell.hidden_size
        if self.skipped is not None:
            wx = wx + self.skipped.matvec(delays.oldest(state[0], width))
        advance = self.advance(draw(self, x_BI))
        if self.line == 1:
            return advance(wx, state)
        before = tuple(delays.oldest(part, width) if self.skip is None else part[..., :width] for part in state)
        new = advance(wx, before)
        keep = delays.push if self.skip is None else delays.newest_alone
        others = (keep(part, now) for part, now in zip(state[1:], new[1:], strict=True))
        return delays.push(state[0], new[0]), *others

    def shown(self, state: State) -> Tensor:
        """The output that belongs to a state: the newest h."""
        return state[0][..., : self.cell.hidden_size]

    def advance(self, drawn: Drawn = NOTHING, steps: Iterable[int] = (0,), reverse: bool = False) -> reference.Step:
        """(U x_t + b, state before) -> state, in plain torch, for these steps of the sequence where there is noise."""
        transitions, alpha = self.transitions, None if self.leak is None else self.leak()
        maps: Any = [None] * len(transitions) if drawn.maps is None else drawn.maps
        matvecs = [t.matvec(drawn.h_mask, prepared) for t, prepared in zip(transitions, maps, strict=True)]
        numbers = iter(steps)

        def noise(number: int, like: Tensor) -> Callable[[int], Tensor] | None:
            seed = drawn.seed
            return None if seed is None else lambda stream: uniform(seed, stream, number, like)

        def advance(wx_BGH: Tensor, state: State) -> State:
            first = 0 if drawn.seed is None else next(numbers) * len(transitions)
            for k, (transition, matvec) in enumerate(zip(transitions, matvecs, strict=True)):
                given = wx_BGH if k == 0 else transition.constant(wx_BGH)
                after = leaked(alpha, state, transition.step(given, matvec, state))
                if self.zoneout is not None:
                    number = first + (len(transitions) - 1 - k if reverse else k)
                    after = zoned(self.zoneout, state, after, noise(number, state[0]))
                state = after
            return state

        return advance

    def traced_steps(self) -> list[Traced] | None:
        """What the native core runs for each transition, or None where it cannot."""
        return steps_of(self.number)

    def renew_cells(self) -> None:
        """Let torch.nn.utils.prune and its kind compute the cells' parameters; maps do that as they read theirs."""
        for transition in self.transitions:
            renew(transition.cell)

    def token_table(self, vectors_VI: Tensor | None) -> Tensor:
        """U x + b of every token, (V, G, H)."""
        return token_products(self.input, vectors_VI, self.cell.input_bias(), self.recurrent.input_scale())

    def input_product(self, x: Tensor, table_VGH: Tensor | None = None) -> Tensor:
        """U x + b, or of tokens (..., 1) what stands in the table."""
        if table_VGH is not None:
            return look_up(table_VGH, x.squeeze(-1))
        return input_product(self.input, x, self.cell.input_bias(), self.recurrent.input_scale())


def _rates(zoneout: float | tuple[float, ...], states: int) -> tuple[float, ...] | None:
    """Of each state; None where all are zero."""
    rates = zoneout if isinstance(zoneout, tuple) else (zoneout,) * states
    if len(rates) != states:
        raise ValueError(f"expected zoneout to be one number or {states}, one for each state, got {len(rates)}")
    return rates if any(rates) else None
