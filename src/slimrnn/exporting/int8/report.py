"""What quantize did: which parts are int8, which stay as they are, and how far the outputs moved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A module of the model; bytes of its weights before and after."""

    name: str
    kind: str
    before: int
    after: int


@dataclass(frozen=True)
class Difference:
    """One output of the model on the given data, int8 against float32; `relative` is rms of the difference over rms."""

    output: str
    largest: float
    mean: float
    relative: float


@dataclass(frozen=True)
class Int8Report:
    """`model.int8_report` of a quantized model."""

    parts: tuple[Part, ...]  # in int8
    kept: tuple[Part, ...]  # in float32
    differences: tuple[Difference, ...] = ()  # measured where data was given

    @property
    def before(self) -> int:
        """Bytes of all weights in float32."""
        return sum(part.before for part in (*self.parts, *self.kept))

    @property
    def after(self) -> int:
        """Bytes of all weights now."""
        return sum(part.after for part in (*self.parts, *self.kept))

    def __str__(self) -> str:
        lines = [f"weights: {self.before:,} bytes, now {self.after:,} ({self.after / max(self.before, 1):.1%})"]
        lines += [f"  int8     {p.name}: {p.kind}, {p.before:,} bytes, now {p.after:,}" for p in self.parts]
        lines += [f"  float32  {p.name}: {p.kind}, {p.after:,} bytes" for p in self.kept]
        for d in self.differences:
            lines.append(
                f"  {d.output}: largest difference {d.largest:.2e}, mean {d.mean:.2e}, relative rms {d.relative:.2%}"
            )
        return "\n".join(lines)
