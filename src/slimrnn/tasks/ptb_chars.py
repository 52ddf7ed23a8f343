"""Characters of the Penn Treebank: say what comes next (low-rank paper §3.0.4, KRU §4.4); also of any text file.

Shape suffixes: T time, B sequences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from slimrnn._checks import check_choice, check_count
from slimrnn.data.text import PTB_SYMBOLS, Text, read_ptb, read_text
from slimrnn.tasks.averages import average
from slimrnn.tasks.sentences import Sentences
from slimrnn.tasks.streams import Streams
from slimrnn.training.config import Config, ModelConfig, OptimConfig
from slimrnn.training.errors import ConfigError
from slimrnn.training.paper import PaperRow
from slimrnn.training.task import Batch, Samples, Score, Task

SPLITS = ("train", "valid", "test")
LARGEST_EXPONENT = 700.0  # beyond, a perplexity is too large for a float


@dataclass(frozen=True)
class PTBCharsTask(Task):
    """Predict the next character of the Penn Treebank, or of any text file."""

    file: Path | None = None
    """a text to learn instead: 90 % to train on, 5 % each to validate and to test"""
    streams: int | None = None
    """read the text as so many parallel streams and carry the state through them, in pieces of bptt steps; by default
    every sentence (of a file: every line) begins anew"""
    max_length: int | None = None
    """without streams: leave sentences of more characters out of training"""

    name = "ptb-chars"
    every_step = True

    def __post_init__(self) -> None:
        for option in ("streams", "max_length"):
            if getattr(self, option) is not None:
                check_count(option, getattr(self, option))
        if self.streams is not None and self.max_length is not None:
            raise ValueError(f"expected max_length only without streams, got {self.max_length} and {self.streams}")

    @property
    def symbols(self) -> str:
        """The alphabet, in the order of the classes."""
        return PTB_SYMBOLS if self.file is None else self.text("train").symbols

    @property
    def input_size(self) -> int:
        return len(self.symbols)

    @property
    def output_size(self) -> int:
        return len(self.symbols)

    @property
    def baselines(self) -> dict[str, float]:
        """All symbols equally likely."""
        return {"uniform": math.log(len(PTB_SYMBOLS))} if self.file is None else {}

    def text(self, split: str) -> Text:
        """The characters of a split."""
        return read_ptb(split) if self.file is None else read_text(Path(self.file), split)

    def samples(self, split: str, seed: int) -> Samples:
        check_choice("split", split, SPLITS)
        text = self.text(split)
        if self.streams is not None:
            if self.streams > len(text.tokens):
                raise ConfigError(f"expected at most {len(text.tokens):,} streams of {split}, got {self.streams:,}")
            return Streams(text, self.streams)
        sentences = Sentences.of(text, self.max_length if split == "train" else None)
        if sentences.size == 0:
            raise ConfigError(f"expected max_length of at least the shortest sentence's, got {self.max_length}")
        return sentences

    def scores(self, output: Tensor, batch: Batch) -> dict[str, Score]:
        """The loss is the cross-entropy of a character in nats; `derived` has it in bits."""
        classes, targets = output.reshape(-1, output.shape[-1]), batch.targets.reshape(-1)
        losses = functional.cross_entropy(classes, targets, reduction="none")
        return {"loss": average(losses.view_as(batch.targets), batch.weights)}

    def derived(self, means: Mapping[str, float]) -> dict[str, float]:
        """The low-rank paper's perplexity of a character is 2 to the power of its bits."""
        nats = means["loss"]
        return {"bits_per_character": nats / math.log(2), "perplexity": math.exp(min(nats, LARGEST_EXPONENT))}

    def check(self, config: Config) -> None:
        for split in SPLITS:
            self.samples(split, config.seed)
        if config.model.bidirectional:
            raise ValueError("expected one direction, got a bidirectional net, which reads what it is to predict")
        if self.streams is None:
            return
        if config.bptt is None:
            raise ValueError(f"expected bptt, the steps of a piece, with {self.streams} streams, got none")
        if config.batch_size > self.streams:
            raise ValueError(f"expected batch_size of at most the {self.streams} streams, got {config.batch_size}")

    def model(self, config: ModelConfig) -> nn.Module:
        from slimrnn.training.symbol_model import SymbolModel

        return SymbolModel(self.input_size, self.output_size, config, every_step=True)

    @classmethod
    def papers(cls) -> tuple[PaperRow, ...]:
        return (*(_low_rank_paper(line) for line in _LINES), _kronecker_paper())


class _Line(NamedTuple):
    """A line of table 2 of the low-rank paper, with our number of parameters beside the paper's."""

    cell: Literal["gru", "lstm"]
    hidden: int
    rank: int | None
    tied: bool
    dropout: bool
    parameters: int
    millions: str
    perplexity: float

    @property
    def name(self) -> str:
        kind = self.cell if self.rank is None else f"lrd-{self.cell}"
        sizes = f"{self.hidden}" if self.rank is None else f"{self.hidden}-{self.rank}"
        return f"ptb-{kind}{'-tied' * self.tied}-{sizes}{'-dropout' * self.dropout}"


_LINES = (
    _Line("gru", 1000, None, False, False, 3_204_050, "3.11", 2.96),
    _Line("gru", 1000, None, False, True, 3_204_050, "3.11", 2.92),
    _Line("gru", 3298, None, False, True, 33_303_254, "33.0", 2.77),
    _Line("lstm", 1000, None, False, True, 4_254_050, "4.25", 2.92),
    _Line("gru", 1000, 64, False, False, 591_050, "0.49", 2.92),
    _Line("gru", 1000, 64, True, False, 463_050, "0.46", 2.90),
    _Line("gru", 3298, 128, False, False, 3_215_600, "2.89", 2.95),
    _Line("gru", 3298, 128, False, True, 3_215_600, "2.89", 2.86),
    _Line("gru", 5459, 64, False, True, 3_226_319, "2.69", 2.82),
    _Line("gru", 5459, 64, True, True, 2_527_567, "1.99", 2.81),
    _Line("gru", 4480, 128, True, True, 3_221_170, "2.78", 2.86),
    _Line("gru", 6985, 64, True, True, 3_234_105, "2.54", 2.76),
    _Line("lstm", 1740, 300, False, True, 4_624_970, "4.25", 2.86),
)

_SENTENCE_UPDATES = 1315  # 42,068 sentences but one that is longer than 500, in batches of 32
_LSTM_UPDATES = 2007  # 50 streams of 100,350 characters in pieces of 50
_KRU_UPDATES = 3345  # ... of 30
_EPOCHS = 20


def _low_rank_paper(line: _Line) -> PaperRow:
    """Table 2. GRUs: A.2, and what the authors' code adds. LSTMs: A.3, of which less is known."""
    model = ModelConfig(
        line.cell,
        line.hidden,
        "dense" if line.rank is None else "low-rank+diagonal",
        rank=line.rank,
        tied=line.tied,
        recurrent_dropout=0.2 if line.dropout else 0.0,
    )
    is_gru = line.cell == "gru"
    per_epoch = _SENTENCE_UPDATES if is_gru else _LSTM_UPDATES
    config = Config(
        PTBCharsTask(max_length=500) if is_gru else PTBCharsTask(streams=50),
        model,
        OptimConfig(lr=1e-3 if is_gru else 2e-4, clip_norm=1.0),
        updates=_EPOCHS * per_epoch,
        batch_size=32 if is_gru else 50,
        bptt=None if is_gru else 50,
        valid_size=4000,
        eval_every=per_epoch,
        checkpoint_every=500,
    )
    return PaperRow(
        line.name,
        "low-rank table 2",
        f"perplexity {line.perplexity:.2f} per character",
        config,
        score="perplexity",
        bound=line.perplexity,
        note=_note(line),
    )


def _note(line: _Line) -> str:
    counted = f"{line.parameters:,} parameters, {line.millions} M in the paper, "
    if line.cell == "gru":
        rule = "which counts one input matrix of three, 51 symbols and no bias of the recurrent product"
        counted += "where this one line counts all input matrices" if line.millions == "0.46" else rule
        settings = "batch, clipping and longest sentence are those of the authors' code"
    elif line.rank is None:
        counted += "which has 49 symbols"
        settings = "the paper follows Graves (2013) here: we carry the state over, in pieces of 50"
    else:
        counted += "whose sizes give more"
        settings = "the paper follows Graves (2013) here: we carry the state over, in pieces of 50"
    dropout = "; it gives no rate of dropout: 0.2" if line.dropout else ""
    return f"{counted}; {settings}; 20 epochs, of which the paper says nothing{dropout}"


def _kronecker_paper() -> PaperRow:
    """KRU §4.4: figures only."""
    config = Config(
        PTBCharsTask(streams=50),
        ModelConfig("rnn", 512, "kronecker", factors=(2,) * 9, nonlinearity="modrelu"),
        OptimConfig(recurrent_rate=0.1, clip_norm=1.0, penalty=1.0, schedule="plateau", schedule_patience=1),
        updates=_EPOCHS * _KRU_UPDATES,
        batch_size=50,
        bptt=30,
        eval_every=_KRU_UPDATES,
        checkpoint_every=500,
    )
    return PaperRow(
        "ptb-kru",
        "KRU §4.4",
        "bits per character close to those of RNN and LSTM",
        config,
        score="bits_per_character",
        note="the paper gives no size: 512 units; slow factors, penalty and clipping as on the other tasks",
    )
