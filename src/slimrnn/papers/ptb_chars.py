"""Results on characters of the Penn Treebank: low-rank paper §3.0.4; KRU §4.4."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

from slimrnn.papers.nets import UNITARY_RATE, full_unitary, kru
from slimrnn.papers.row import PaperRow
from slimrnn.tasks.ptb_chars import PTBCharsTask
from slimrnn.training.config import Config, ModelConfig, OptimConfig


class _Net(NamedTuple):
    """A net of the low-rank paper's table 2; `parameters` is our count, `millions` the paper's."""

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


_TABLE_2 = (
    _Net("gru", 1000, None, False, False, 3_204_050, "3.11", 2.96),
    _Net("gru", 1000, None, False, True, 3_204_050, "3.11", 2.92),
    _Net("gru", 3298, None, False, True, 33_303_254, "33.0", 2.77),
    _Net("lstm", 1000, None, False, True, 4_254_050, "4.25", 2.92),
    _Net("gru", 1000, 64, False, False, 591_050, "0.49", 2.92),
    _Net("gru", 1000, 64, True, False, 463_050, "0.46", 2.90),
    _Net("gru", 3298, 128, False, False, 3_215_600, "2.89", 2.95),
    _Net("gru", 3298, 128, False, True, 3_215_600, "2.89", 2.86),
    _Net("gru", 5459, 64, False, True, 3_226_319, "2.69", 2.82),
    _Net("gru", 5459, 64, True, True, 2_527_567, "1.99", 2.81),
    _Net("gru", 4480, 128, True, True, 3_221_170, "2.78", 2.86),
    _Net("gru", 6985, 64, True, True, 3_234_105, "2.54", 2.76),
    _Net("lstm", 1740, 300, False, True, 4_624_970, "4.25", 2.86),
)

_SENTENCE_UPDATES = 1315  # 42,068 sentences but one that is longer than 500, in batches of 32
_LSTM_UPDATES = 2007  # 50 streams of 100,350 characters, bptt of 50
_KRU_UPDATES = 3345  # the same streams, bptt of 30
_EPOCHS = 20


def _low_rank_paper(net: _Net) -> PaperRow:
    """Table 2. GRUs: A.2 and the authors' code. LSTMs: A.3, which says less."""
    structure = "dense" if net.rank is None else "low-rank+diagonal"
    is_gru = net.cell == "gru"
    per_epoch = _SENTENCE_UPDATES if is_gru else _LSTM_UPDATES
    config = Config(
        PTBCharsTask(max_length=500) if is_gru else PTBCharsTask(streams=50),
        ModelConfig(
            net.cell,
            net.hidden,
            structure,
            rank=net.rank,
            tied=net.tied,
            recurrent_dropout=(0.1, 0.5) if net.dropout else 0.0,
            mask_per_gate=net.dropout and not net.tied,
            readout_dropout=0.5 if net.dropout else 0.0,
        ),
        OptimConfig(lr=1e-3 if is_gru else 2e-4, clip_norm=1.0),
        updates=_EPOCHS * per_epoch,
        batch_size=32 if is_gru else 50,
        bptt=None if is_gru else 50,
        valid_size=4000,
        eval_every=per_epoch,
        checkpoint_every=500,
    )
    claim = f"perplexity {net.perplexity:.2f} per character"
    row = PaperRow(
        net.name, "low-rank table 2", claim, config, score="perplexity", bound=net.perplexity, note=_note(net)
    )
    # The paper's words are the mean over characters, the code for its GRUs has the mean over sentences: both must pass.
    return replace(row, second=("sentence_perplexity", net.perplexity)) if is_gru else row


def _note(net: _Net) -> str:
    counted = f"{net.parameters:,} parameters, {net.millions} M in the paper, "
    if net.cell == "gru":
        rule = "which counts one input matrix of three, 51 symbols and no recurrent bias"
        counted += "where this one row counts all input matrices" if net.millions == "0.46" else rule
        settings = (
            "batch, clipping and longest sentence are those of the authors' code, which minimises the mean over"
            " sentences, ours that over characters, and by default stops after 50,000 updates without gain"
        )
    else:
        counted += "which has 49 symbols" if net.rank is None else "whose sizes give more"
        settings = "the paper follows Graves (2013) here: the state is carried over, with bptt of 50"
    dropout = (
        "; dropout of inputs 0.1, of h 0.5, before the read-out 0.5, as in the authors' code" if net.dropout else ""
    )
    dropout += ", and a mask of h for each gate" if net.dropout and not net.tied else ""
    return f"{counted}; {settings}; 20 epochs, as the paper gives no number{dropout}"


_KRU_NETS = {  # net, and what the paper says of it
    "kru": (kru(9), "fewer bits per character than a fuRNN"),
    "rnn": (ModelConfig("rnn", 256), "bits per character very close to those of a KRU"),
    "lstm": (ModelConfig("lstm", 128), "bits per character very close to those of a KRU"),
    "furnn": (full_unitary(128), "more bits per character than a KRU"),
}


def _kronecker_paper(net: str) -> PaperRow:
    """KRU §4.4, which shows curves, no numbers and no sizes: only that the KRU is ahead of the fuRNN can be judged."""
    model, claim = _KRU_NETS[net]
    optim = OptimConfig(schedule="plateau", schedule_patience=1)
    optims = {
        "kru": replace(optim, recurrent_rate=0.1, clip_norm=1.0, penalty=1.0),
        "furnn": replace(optim, recurrent_rate=UNITARY_RATE),
    }
    config = Config(
        PTBCharsTask(streams=50),
        model,
        optims.get(net, optim),
        updates=_EPOCHS * _KRU_UPDATES,
        batch_size=50,
        bptt=30,
        eval_every=_KRU_UPDATES,
        checkpoint_every=500,
    )
    settings = {
        "kru": "; learning rate of the factors, penalty and clipping as on the other tasks",
        "furnn": "; the unitary matrix moves at 1e-6, as in copy-1000-furnn",
    }
    return PaperRow(
        f"ptb-{net}",
        "KRU §4.4",
        claim,
        config,
        score="bits_per_character",
        compared_with="ptb-furnn" if net == "kru" else None,
        note=f"the paper gives no size: {model.hidden} units{settings.get(net, '')}",
    )


ROWS = (*map(_low_rank_paper, _TABLE_2), *map(_kronecker_paper, _KRU_NETS))
