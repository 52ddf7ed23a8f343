"""TIMIT as frames with their phones: the whole corpus (LDC93S1) in its layout, and the sample of NLTK in its own."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.audio import read_audio
from slimrnn.data.cache import Arrays, cached
from slimrnn.data.directory import dataset_folder, find_folder
from slimrnn.data.mfcc import FEATURES, Framing, mfcc
from slimrnn.data.phones import frame_phones, read_phones
from slimrnn.errors import DataError

WHOLE: Final = "timit"
SAMPLE: Final = "timit_sample"
FRAMING = Framing(16_000)
# TRAIN/DR1/FCJF0/SA1.WAV, or dr1-fvmh0/sa1.wav; some copies have a RIFF file SA1.WAV.wav beside or instead.
_PLACES = re.compile(r"(?:(?:^|/)(train|test)/dr\d/|(?:^|/)dr\d-)([^/]+)/([^/.]+)(?:\.wav)?\.(wav|phn)\Z")
PER_SPEAKER = 10
SPEAKERS = {"train": 462, "test": 168}
VALIDATION = 184  # of the training utterances: KRU §4.5
_CORE = (  # the core test set, of two men and a woman of each dialect: testset.doc of the corpus
    "mdab0 mwbt0 felc0 mtas1 mwew0 fpas0 mjmp0 mlnt0 fpkt0 mlll0 mtls0 fjlm0 "
    "mbpm0 mklt0 fnlp0 mcmj0 mjdh0 fmgd0 mgrt0 mnjm0 fdhc0 mjln0 mpam0 fmld0"
)
CORE = frozenset(_CORE.split())
SAMPLE_SPEAKERS = {  # ours: there is no custom. As many women as men in each; no two of a region in what is held back
    "train": ("faem0", "falk0", "fbcg1", "ftlg0", "fvmh0", "madd0", "maeb0", "marc0", "mbma1", "mcpm0"),
    "valid": ("fapb0", "madc0"),
    "test": ("falr0", "fblv0", "mbcg0", "mbgt0"),
}


@dataclass(frozen=True, order=True)
class Utterance:
    """A sentence that a speaker read: `part` is train or test, or empty in the sample; all in lower case."""

    part: str
    speaker: str
    sentence: str
    audio: Path
    phones: Path

    @property
    def name(self) -> str:
        return f"{self.speaker}/{self.sentence}"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Utterances, and the frames of all of them one after the other."""

    utterances: tuple[Utterance, ...]
    features: NDArray[np.float32]  # (frames, 26), as they come
    phones: NDArray[np.uint8]  # (frames,): among 61, or UNLABELLED
    starts: NDArray[np.int64]  # (utterances + 1,): frame where each begins, and the end

    def frames(self, utterance: int) -> slice:
        """Where the frames of an utterance are."""
        return slice(self.starts[utterance], self.starts[utterance + 1])


def which_corpus() -> str | None:
    """The whole corpus where it is in the data directory, else the sample, else none."""
    try:
        return next((name for name in (WHOLE, SAMPLE) if dataset_folder(name).is_dir()), None)
    except DataError:  # no directory to look in, as loading will say
        return None


def load_timit(corpus: str) -> Corpus:
    """ "timit" or "timit_sample", complete; a second call gives the same arrays, not to be written to."""
    return _load(corpus, find_folder(corpus).resolve())


@lru_cache(maxsize=2)
def _load(corpus: str, folder: Path) -> Corpus:
    utterances = find_utterances(folder)
    check_complete(utterances, corpus, folder)
    return read_corpus(utterances)


def find_utterances(folder: Path) -> tuple[Utterance, ...]:
    """All utterances below a folder, in the order of part, speaker and sentence."""
    found: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for path in _files(folder):
        place = _PLACES.search(path.lower())
        if place is not None:
            part, speaker, sentence, kind = place.groups()
            kinds = found.setdefault((part or "", speaker, sentence, os.path.dirname(path)), {})
            kinds[kind] = min(path, kinds.get(kind, path), key=len)
    if not found:
        raise DataError(f"expected TRAIN/DR*/SPEAKER/*.WAV or dr*-speaker/*.wav in {folder}, got none")
    utterances: dict[str, Utterance] = {}
    for (part, speaker, sentence, _), kinds in sorted(found.items()):
        if len(kinds) < 2:
            missing, there = ("phn", "wav") if "wav" in kinds else ("wav", "phn")
            raise DataError(f"expected {sentence}.{missing} beside {folder / kinds[there]}, got none")
        one = Utterance(part, speaker, sentence, folder / kinds["wav"], folder / kinds["phn"])
        if one.name in utterances:
            raise DataError(f"expected {one.name} once, got {utterances[one.name].audio} and {one.audio}")
        utterances[one.name] = one
    return tuple(utterances.values())


def _files(folder: Path) -> Iterator[str]:
    """Paths from the folder on, with / between parts."""
    for directory, _, names in os.walk(folder):
        inner = Path(directory).relative_to(folder)
        for name in names:
            yield (inner / name).as_posix()


def check_complete(utterances: Sequence[Utterance], corpus: str, folder: Path) -> None:
    """The splits below mean something only where nobody is missing."""
    if corpus == SAMPLE:
        wanted = {speaker: PER_SPEAKER for speakers in SAMPLE_SPEAKERS.values() for speaker in speakers}
        got = Counter(utterance.speaker for utterance in utterances)
        wrong = sorted(speaker for speaker in {*wanted, *got} if wanted.get(speaker) != got[speaker])
        if wrong:
            raise DataError(
                f"expected {wanted.get(wrong[0], 0)} utterances of {wrong[0]} in {folder}, got {got[wrong[0]]}"
            )
        return
    for part, speakers in SPEAKERS.items():
        here = Counter(utterance.speaker for utterance in utterances if utterance.part == part)
        if len(here) != speakers or set(here.values()) != {PER_SPEAKER}:
            raise DataError(
                f"expected {PER_SPEAKER} utterances of each of {speakers} speakers below {part.upper()} in {folder}, "
                f"got {here.total():,} of {len(here)}: slimrnn data check timit counts files"
            )


def read_corpus(utterances: Sequence[Utterance]) -> Corpus:
    """Features and phones of all frames, from the cache where the files have not changed."""
    raw = [path for utterance in utterances for path in (utterance.audio, utterance.phones)]
    arrays = cached("timit-mfcc-1", raw, lambda: _build(utterances))
    return Corpus(
        tuple(utterances),
        arrays["features"].astype(np.float32, copy=False),
        arrays["phones"].astype(np.uint8, copy=False),
        arrays["starts"].astype(np.int64, copy=False),
    )


def _build(utterances: Sequence[Utterance]) -> Arrays:
    features, phones, starts = [np.empty((0, FEATURES), np.float32)], [np.empty(0, np.uint8)], [0]
    for utterance in utterances:
        samples = read_audio(utterance.audio, FRAMING.rate)
        frames, segments = FRAMING.frames_in(len(samples)), read_phones(utterance.phones)
        if not frames:
            raise DataError(
                f"expected at least {FRAMING.window} samples, a frame, in {utterance.audio}, got {len(samples)}"
            )
        if segments[-1].start >= len(samples):
            raise DataError(
                f"expected segments within the {len(samples):,} samples of {utterance.audio}, "
                f"got one from {segments[-1].start:,} on in {utterance.phones}"
            )
        features.append(mfcc(samples, FRAMING.rate).astype(np.float32))
        phones.append(frame_phones(segments, np.arange(frames) * FRAMING.hop + FRAMING.window // 2))
        starts.append(starts[-1] + frames)
    return {"features": np.concatenate(features), "phones": np.concatenate(phones), "starts": np.array(starts)}


def split(utterances: Sequence[Utterance], name: str, *, sa: bool = True, core: bool = False) -> NDArray[np.int64]:
    """Places of the utterances of "train", "valid" or "test", in order.

    Without `sa` the two sentences that everybody read are left out; `core` is the test set of 24 speakers, always
    without. Of the whole corpus, the 184 training utterances whose names have the smallest BLAKE2 digests validate."""
    wanted = [place for place, one in enumerate(utterances) if sa or not one.sentence.startswith("sa")]
    if not any(one.part for one in utterances):
        if core:
            raise DataError("expected the whole corpus for the core test set, got the sample, which has none")
        return _places(place for place in wanted if utterances[place].speaker in SAMPLE_SPEAKERS[name])
    if name == "test":
        test = [place for place in wanted if utterances[place].part == "test"]
        return _places(place for place in test if not core or _in_core(utterances[place]))
    train = [place for place in wanted if utterances[place].part == "train"]
    valid = set(sorted(train, key=lambda place: _digest(utterances[place]))[:VALIDATION])
    return _places(place for place in train if (place in valid) == (name == "valid"))


def _in_core(utterance: Utterance) -> bool:
    return utterance.speaker in CORE and not utterance.sentence.startswith("sa")


def _digest(utterance: Utterance) -> str:
    return hashlib.blake2b(utterance.name.encode(), digest_size=8).hexdigest()


def _places(places: Iterator[int]) -> NDArray[np.int64]:
    return np.fromiter(places, dtype=np.int64)
