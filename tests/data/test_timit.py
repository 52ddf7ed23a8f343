"""TIMIT: the sample as it is, the whole corpus as its documents say, and what is wrong with neither."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from real_data import needs_data
from slimrnn.data import DataError
from slimrnn.data.phones import (
    NUMBERS,
    PHONES,
    UNLABELLED,
    Segment,
    classes,
    folded,
    folding,
    frame_phones,
    read_phones,
)
from slimrnn.data.timit import (
    CORE,
    FRAMING,
    SAMPLE_SPEAKERS,
    Corpus,
    Utterance,
    check_complete,
    find_utterances,
    load_timit,
    read_corpus,
    split,
    which_corpus,
)
from speech import sphere, tone, write_utterance


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def sample() -> Corpus:
    return load_timit("timit_sample")


@needs_data
def test_the_sample_has_its_counts(sample: Corpus) -> None:
    assert len(sample.utterances) == 160
    assert Counter(Counter(one.speaker for one in sample.utterances).values()) == {10: 16}
    assert set(sample.phones.tolist()) == {*range(61), UNLABELLED}  # all 61 phones occur


@needs_data
def test_features_of_every_utterance_have_its_length(sample: Corpus) -> None:
    sizes = [(one.audio.stat().st_size - 1024) // 2 for one in sample.utterances]
    assert np.diff(sample.starts).tolist() == [FRAMING.frames_in(size) for size in sizes]
    assert sample.starts[-1] == len(sample.features) == len(sample.phones) == 48_695
    assert sample.features.shape[1] == 26
    assert np.isfinite(sample.features).all()


@needs_data
def test_labels_cover_the_frames_and_are_the_phones_at_their_centres(sample: Corpus) -> None:
    assert np.sum(sample.phones == UNLABELLED) == 17  # of one recording, 175 ms after its last segment
    one = next(place for place, found in enumerate(sample.utterances) if found.name == "fvmh0/sa1")
    labels = sample.phones[sample.starts[one] : sample.starts[one + 1]]
    for line in sample.utterances[one].phones.read_text().splitlines():
        start, end, phone = line.split()
        centres = [t for t in range(len(labels)) if int(start) <= 160 * t + 200 < int(end)]
        assert all(PHONES[labels[t]] == phone for t in centres)


@needs_data
def test_the_sample_is_split_by_speakers(sample: Corpus) -> None:
    places = {name: split(sample.utterances, name) for name in ("train", "valid", "test")}
    assert [len(found) for found in places.values()] == [100, 20, 40]
    assert np.array_equal(np.sort(np.concatenate(list(places.values()))), np.arange(160))
    for name, found in places.items():
        speakers = {sample.utterances[place].speaker for place in found}
        assert speakers == set(SAMPLE_SPEAKERS[name])
        assert sum(speaker[0] == "f" for speaker in speakers) * 2 == len(speakers)
    without = split(sample.utterances, "train", sa=False)
    assert len(without) == 80
    assert not any(sample.utterances[place].sentence.startswith("sa") for place in without)
    with pytest.raises(DataError, match="expected the whole corpus for the core test set, got the sample"):
        split(sample.utterances, "test", core=True)


@needs_data
def test_a_second_reading_comes_from_the_cache_and_is_the_same(sample: Corpus) -> None:
    some = sample.utterances[:3]
    built, kept = read_corpus(some), read_corpus(some)
    assert len(list((Path(os.environ["XDG_CACHE_HOME"]) / "slimrnn/parsed").iterdir())) == 1
    assert np.array_equal(built.features, kept.features)
    assert np.array_equal(built.features, sample.features[: sample.starts[3]])
    assert [str(array.dtype) for array in (kept.features, kept.phones, kept.starts)] == ["float32", "uint8", "int64"]


def test_foldings_are_those_of_lee_and_hon() -> None:
    assert len(PHONES) == len(set(PHONES)) == 61
    assert [len(classes(count)) for count in (61, 48, 39)] == [61, 48, 39]
    groups: dict[str | None, set[str]] = {}
    for phone in PHONES:
        groups.setdefault(folded(phone, 39), set()).add(phone)
    assert {key: members for key, members in groups.items() if len(members) > 1} == {
        "aa": {"aa", "ao"},
        "ah": {"ah", "ax", "ax-h"},
        "er": {"er", "axr"},
        "hh": {"hh", "hv"},
        "ih": {"ih", "ix"},
        "l": {"l", "el"},
        "m": {"m", "em"},
        "n": {"n", "en", "nx"},
        "ng": {"ng", "eng"},
        "sh": {"sh", "zh"},
        "uw": {"uw", "ux"},
        "sil": {"pcl", "tcl", "kcl", "bcl", "dcl", "gcl", "h#", "pau", "epi"},
    }
    assert groups[None] == {"q"}
    apart = {phone: folded(phone, 48) for phone in ("tcl", "dcl", "epi", "pau", "ao", "ax", "ix", "el", "en", "zh")}
    assert list(apart.values()) == ["cl", "vcl", "epi", "sil", "ao", "ax", "ix", "el", "en", "zh"]


@pytest.mark.parametrize("count", [61, 48, 39])
def test_every_phone_has_a_class_but_q(count: int) -> None:
    table = folding(count)
    assert set(table[:61].tolist()) - {-1} == set(range(count))
    assert (table[NUMBERS["q"]] == -1) == (count != 61)
    assert table[UNLABELLED] == -1


def test_other_numbers_of_phones_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 61, 48 or 39 phones, got 40"):
        classes(40)


def test_frames_between_and_after_segments_have_no_label() -> None:
    segments = [Segment(10, 20, 3), Segment(25, 30, 4)]
    found = frame_phones(segments, np.array([9, 10, 19, 20, 24, 25, 29, 30, 99]))
    assert found.tolist() == [UNLABELLED, 3, 3, UNLABELLED, UNLABELLED, 4, 4, UNLABELLED, UNLABELLED]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 10 h#\n10 20 xx\n", "expected one of the 61 phones in line 2 of .*a.phn, got 'xx'"),
        ("0 10 h#\n8 20 aa\n", "expected a start of at least 10, where the last ended, in line 2 of .*a.phn, got 8"),
        ("10 10 h#\n", "expected a segment that ends after its start in line 1 of .*a.phn, got '10 10 h#'"),
        ("0 10 h#\n10 aa\n", "expected start, end and phone in line 2 of .*a.phn, got '10 aa'"),
        ("0 -5 h#\n", "expected a sample by number, of at most 18 digits, in line 1 of .*a.phn, got '-5'"),
        ("0 5 h#\n5 ² h#\n", "expected a sample by number, .* in line 2 of .*a.phn, got 'Â²'"),
        (f"0 {2**63} h#\n", f"expected a sample by number, .* in line 1 of .*a.phn, got '{2**63}'"),
        (f"0 {'9' * 5000} h#\n", "expected a sample by number, .* in line 1 of .*a.phn, got '9{59}…$"),
        ("\n \n", "expected lines of start, end and phone in .*a.phn, got none"),
    ],
)
def test_bad_phones_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.phn").write_text(text)
    with pytest.raises(DataError, match=message):
        read_phones(tmp_path / "a.phn")


def test_both_layouts_formats_and_cases_are_found(tmp_path: Path) -> None:
    write_utterance(tmp_path / "a/TIMIT/TRAIN/DR1/FCJF0", "SA1", upper=True)
    write_utterance(tmp_path / "b/train/dr1/fcjf0", "sa1", riff=True)
    write_utterance(tmp_path / "c/dr1-fcjf0", "sa1")
    write_utterance(tmp_path / "d/TRAIN/DR1/FCJF0", "SA1", upper=True)  # RIFF beside SPHERE, as some copies have it
    (tmp_path / "d/TRAIN/DR1/FCJF0/SA1.WAV.wav").write_bytes(b"not looked at")
    (tmp_path / "d/TRAIN/DR1/FCJF0/._SA1.WAV").write_bytes(b"nor this")
    found = [find_utterances(tmp_path / folder) for folder in "abcd"]
    assert [[(one.part, one.name) for one in some] for some in found] == [
        [("train", "fcjf0/sa1")],
        [("train", "fcjf0/sa1")],
        [("", "fcjf0/sa1")],
        [("train", "fcjf0/sa1")],
    ]
    corpora = [read_corpus(some) for some in found]
    assert all(np.array_equal(corpora[0].features, corpus.features) for corpus in corpora)
    assert all(np.array_equal(corpora[0].phones, corpus.phones) for corpus in corpora)
    assert np.unique(corpora[1].phones).tolist() == [*sorted(NUMBERS[name] for name in ("aa", "h#", "q")), UNLABELLED]
    assert np.flatnonzero(corpora[1].phones == UNLABELLED).tolist() == [99]


@pytest.mark.parametrize(("kept", "missing"), [("wav", "phn"), ("phn", "wav")])
def test_an_utterance_without_audio_or_phones_is_named(tmp_path: Path, kept: str, missing: str) -> None:
    write_utterance(tmp_path / "dr1-fcjf0", "sa1")
    write_utterance(tmp_path / "dr1-fcjf0", "sx1")
    (tmp_path / f"dr1-fcjf0/sx1.{missing}").unlink()
    with pytest.raises(DataError, match=f"expected sx1.{missing} beside {tmp_path}/dr1-fcjf0/sx1.{kept}, got none"):
        find_utterances(tmp_path)


def test_what_is_no_corpus_is_refused(tmp_path: Path) -> None:
    write_utterance(tmp_path / "speaker", "sa1")
    with pytest.raises(
        DataError, match=rf"expected TRAIN/DR\*/SPEAKER/\*.WAV or dr\*-speaker/\*.wav in {tmp_path}, got"
    ):
        find_utterances(tmp_path)


def test_an_utterance_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    write_utterance(tmp_path / "TRAIN/DR1/FCJF0", "SA1", upper=True)
    write_utterance(tmp_path / "copy/train/dr1/fcjf0", "sa1")
    with pytest.raises(DataError, match=r"expected fcjf0/sa1 once, got .* and .*"):
        find_utterances(tmp_path)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (399, "expected at least 400 samples, a frame, in .*sa1.wav, got 399"),
        (11_000, "expected segments within the 11,0"),
    ],
)
def test_audio_that_does_not_fit_is_refused(tmp_path: Path, samples: int, message: str) -> None:
    write_utterance(tmp_path / "dr1-fcjf0", "sa1")
    (tmp_path / "dr1-fcjf0/sa1.wav").write_bytes(sphere(tone(samples)))
    with pytest.raises(DataError, match=message):
        read_corpus(find_utterances(tmp_path))


def whole_corpus() -> list[Utterance]:
    """All of TIMIT by name, with its core test speakers and made-up others."""
    speakers = {"train": [f"m{number:03}0" for number in range(462)]}
    speakers["test"] = [*sorted(CORE), *(f"f{number:03}1" for number in range(168 - len(CORE)))]
    sentences = ["sa1", "sa2", "si1", "si2", "si3", *(f"sx{number}" for number in range(1, 6))]
    return [
        Utterance(part, speaker, sentence, Path(), Path())
        for part, names in speakers.items()
        for speaker in names
        for sentence in sentences
    ]


@pytest.mark.parametrize(("sa", "sizes"), [(True, [4_436, 184, 1_680]), (False, [3_512, 184, 1_344])])
def test_the_whole_corpus_is_split_as_usual(sa: bool, sizes: list[int]) -> None:
    utterances = whole_corpus()
    check_complete(utterances, "timit", Path("timit"))
    train, valid, test = (split(utterances, name, sa=sa) for name in ("train", "valid", "test"))
    assert [len(train), len(valid), len(test)] == sizes
    assert not set(train) & set(valid)
    assert {utterances[place].part for place in (*train, *valid)} == {"train"}
    assert len({utterances[place].speaker for place in valid}) > 100  # from all over
    assert np.array_equal(valid, split(list(utterances), "valid", sa=sa))
    core = split(utterances, "test", sa=sa, core=True)
    assert len(core) == 192
    assert {utterances[place].speaker for place in core} == CORE
    assert not any(utterances[place].sentence.startswith("sa") for place in core)


def test_the_core_test_set_has_two_men_and_a_woman_of_each_region() -> None:
    assert len(CORE) == 24
    assert Counter(speaker[0] for speaker in CORE) == {"m": 16, "f": 8}


@needs_data
def test_the_core_test_set_is_that_of_the_corpus_own_document() -> None:
    document = (Path(os.environ["SLIMRNN_DATA"]) / "timit_sample/testset.doc").read_text().lower()
    assert all(document.count(speaker[1:]) == 1 for speaker in CORE)


def test_an_incomplete_corpus_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIMRNN_DATA", str(tmp_path))
    assert which_corpus() is None
    with pytest.raises(DataError, match="put it there, or run slimrnn data get timit_sample"):
        load_timit("timit_sample")
    write_utterance(tmp_path / "timit_sample/dr1-fvmh0", "sa1")
    assert which_corpus() == "timit_sample"
    with pytest.raises(DataError, match=r"expected 10 utterances of faem0 in .*timit_sample, got 0"):
        load_timit("timit_sample")
    write_utterance(tmp_path / "timit/TRAIN/DR1/FCJF0", "SA1", upper=True)
    assert which_corpus() == "timit"
    with pytest.raises(
        DataError, match=r"expected 10 utterances of each of 462 speakers below TRAIN in .*, got 1 of 1:"
    ):
        load_timit("timit")
