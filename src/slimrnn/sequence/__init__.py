"""Sequence to sequence: encoders, decoders, scheduled sampling, generation and likelihood."""

from slimrnn.sequence.curricula import Constant, Curriculum, ExponentialDecay, InverseSigmoidDecay, LinearDecay
from slimrnn.sequence.decoder import Decoder
from slimrnn.sequence.encoder import Encoder
from slimrnn.sequence.encoder_decoder import EncoderDecoder
from slimrnn.sequence.gaussian import Gaussian
from slimrnn.sequence.generated import Generated
from slimrnn.sequence.lengths import EndSymbol, Halt, PredictedLength
from slimrnn.sequence.sampling import GREEDY, Sampling
from slimrnn.sequence.stream import Stream
from slimrnn.sequence.symbols import PADDING, Symbols

__all__ = [
    "GREEDY",
    "PADDING",
    "Constant",
    "Curriculum",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "EndSymbol",
    "ExponentialDecay",
    "Gaussian",
    "Generated",
    "Halt",
    "InverseSigmoidDecay",
    "LinearDecay",
    "PredictedLength",
    "Sampling",
    "Stream",
    "Symbols",
]
