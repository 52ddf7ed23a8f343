"""Features of speech against another implementation and against what is known of simple signals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from slimrnn.data.mfcc import Framing, derivative, mel_filters, mfcc


def chirp() -> NDArray[np.int16]:
    """2,000 samples: a rising tone, two steady ones and what is like noise."""
    n = np.arange(2000)
    tones = 3000 * np.sin(2e-5 * np.pi * n * n) + 1000 * np.sin(0.3 * n) + 500 * np.sin(2.9 * n)
    signal: NDArray[np.int16] = np.round(tones + n * 7919 % 613 - 306).astype(np.int16)
    return signal


# python_speech_features 0.6 on chirp(), printed to ten places:
#   f = mfcc(signal, 16000, winlen=0.025, winstep=0.01, numcep=13, nfilt=26, nfft=512, lowfreq=0, highfreq=8000,
#            preemph=0.97, ceplifter=0, appendEnergy=True, winfunc=numpy.hamming);  d = delta(f, 2)
# Its first feature is the log energy, which is the 13th here. Of 11 frames the first, the sixth and the last.
# fmt: off
ORACLE = {
    0: [-6.1699343272, 2.2257757033, -2.8147125712, 1.9433498355, 2.8855414426, 7.8387731052, 3.4390866187,
        3.0193402627, -0.1524367241, 1.3136218029, -5.4465330937, -1.770855033, 17.6050611207,
        0.594636485, 0.4496914934, 0.2322178341, -0.0303339257, -0.2809961709, -0.4778481459, -0.6023482277,
        -0.6733999109, -0.6885446219, -0.6623670132, -0.595061124, -0.5173663218, 0.0075200284],
    5: [-3.2556864379, 3.1037268884, -4.6957214352, -2.7348775208, -3.8916591189, 0.127036081, -3.9018664935,
        -2.849814942, -3.8825354308, -0.1589267512, -5.0038109219, -0.1324430823, 17.7169269602,
        -0.2006635379, -0.7264352395, -1.334724571, -1.7612452139, -1.7972510287, -1.3568056924, -0.5317659172,
        0.4383957724, 1.2687088368, 1.7401673384, 1.7621944458, 1.38060001, 0.0349368469],
    10: [-7.7152645356, -2.1700062326, -10.2236371098, -7.3103007331, -6.0874399125, 1.3461655183, 0.6404672889,
         3.53253146, 2.1539669497, 3.590872539, -4.5031545179, -2.6903354607, 17.947097026,
         -1.1729140383, -1.0493449223, -0.8038331773, -0.4751539068, -0.1017668329, 0.2553959945, 0.4743243558,
         0.4288687854, 0.1236751858, -0.289517104, -0.6145113612, -0.7337139001, 0.027293891],
}
# fmt: on


@pytest.mark.parametrize("frame", ORACLE)
def test_features_are_those_of_another_implementation(frame: int) -> None:
    features = mfcc(chirp(), 16_000)
    assert features.shape == (11, 26)
    assert features[frame] == pytest.approx(ORACLE[frame], abs=1e-9)  # the oracle's ten places


@pytest.mark.parametrize(("samples", "frames"), [(0, 0), (399, 0), (400, 1), (559, 1), (560, 2), (16_000, 98)])
def test_only_whole_frames_count(samples: int, frames: int) -> None:
    assert Framing(16_000).frames_in(samples) == frames
    if frames:
        assert mfcc(np.ones(samples, np.int16), 16_000).shape == (frames, 26)
    else:
        with pytest.raises(
            ValueError,
            match=rf"expected at least 400 samples of one channel, a frame at 16,000 Hz, got shape \({samples},\)",
        ):
            mfcc(np.ones(samples, np.int16), 16_000)


def test_louder_speech_changes_the_energy_alone() -> None:
    quiet, loud = mfcc(chirp(), 16_000), mfcc(2.0 * chirp(), 16_000)
    louder = np.zeros(26)
    louder[12] = np.log(4)
    assert loud - quiet == pytest.approx(np.broadcast_to(louder, quiet.shape), abs=1e-9)


def test_a_frame_depends_on_its_samples_alone() -> None:
    """But for the one before, by the pre-emphasis, and the derivatives, by two frames to each side."""
    changed = chirp()
    changed[:799] = 0  # frame 5 begins at 800
    assert np.array_equal(mfcc(changed, 16_000)[5:, :13], mfcc(chirp(), 16_000)[5:, :13])
    assert np.array_equal(mfcc(changed, 16_000)[7:], mfcc(chirp(), 16_000)[7:])


def test_filters_are_triangles_at_equal_distances_in_mel() -> None:
    filters, step = mel_filters(16_000), 16_000 / 512
    assert filters.shape == (26, 257)
    peaks = filters.argmax(1)
    middles = 700 * (10 ** (np.arange(1, 27) / 27 * np.log10(1 + 8000 / 700)) - 1)
    assert np.all(np.abs(peaks * step - middles) <= step)  # moved to a whole step
    assert np.array_equal(filters[:, peaks], np.eye(26))  # where one is at its height, its neighbours end
    for before, filter_, after in zip(peaks, filters[1:], peaks[2:], strict=False):
        assert np.all(np.diff(filter_[before : filter_.argmax() + 1]) > 0)
        assert np.all(np.diff(filter_[filter_.argmax() : after + 1]) < 0)


def test_derivatives_of_a_line_are_its_slope() -> None:
    line = 3 * np.arange(8, dtype=np.float64)[:, None]
    assert derivative(line)[2:-2] == pytest.approx(3.0)
    assert derivative(line)[0] == pytest.approx((1 * 3 + 2 * 6) / 10)  # the first repeated


def test_digital_silence_has_finite_features() -> None:
    features = mfcc(np.zeros(1000, np.int16), 16_000)
    assert np.isfinite(features).all()
    assert np.all(features[:, 13:] == 0)


def by_the_book(signal: NDArray[np.int16], rate: int, window: int, hop: int, points: int) -> NDArray[np.float64]:
    """The equations of Davis and Mermelstein term by term, without a fast transform or a matrix of filters."""
    emphasized = [float(signal[0]), *(float(b) - 0.97 * float(a) for a, b in pairwise(signal))]
    mel_of_half = 2595 * np.log10(1 + rate / 1400)
    edges = [int((points + 1) * 700 * (10 ** (mel_of_half * place / 27 / 2595) - 1) / rate) for place in range(28)]
    rows = []
    for start in range(0, len(signal) - window + 1, hop):
        n = np.arange(window)
        shaped = np.array(emphasized[start : start + window]) * (0.54 - 0.46 * np.cos(2 * np.pi * n / (window - 1)))
        power = [abs(shaped @ np.exp(-2j * np.pi * k * n / points)) ** 2 / points for k in range(points // 2 + 1)]
        logs = []
        for low, mid, high in zip(edges, edges[1:], edges[2:], strict=False):
            rising = sum((k - low) / (mid - low) * power[k] for k in range(low, mid))
            falling = sum((high - k) / (high - mid) * power[k] for k in range(mid, high))
            logs.append(np.log(rising + falling))
        turns = [sum(s * np.cos(np.pi * i * (j + 0.5) / 26) for j, s in enumerate(logs)) for i in range(1, 13)]
        rows.append([*(turn * np.sqrt(2 / 26) for turn in turns), np.log(sum(power))])
    static = np.array(rows)
    at = [[min(max(t + n, 0), len(rows) - 1) for t in range(len(rows))] for n in (-2, -1, 1, 2)]
    slopes = (2 * (static[at[3]] - static[at[0]]) + static[at[2]] - static[at[1]]) / 10
    return np.hstack([static, slopes])


@pytest.mark.parametrize(
    ("rate", "window", "hop", "points"), [(8_000, 200, 80, 256), (16_000, 400, 160, 512), (44_100, 1103, 441, 2048)]
)
def test_other_rates_are_those_of_the_equations(rate: int, window: int, hop: int, points: int) -> None:
    signal = np.concatenate([chirp(), chirp()[::-1]])[: window + 6 * hop]
    assert mfcc(signal, rate) == pytest.approx(by_the_book(signal, rate, window, hop, points), abs=1e-8)


def test_a_tone_keeps_its_place_at_another_rate() -> None:
    """What is hard-wired to a rate hears a tone of 1 kHz elsewhere."""
    for rate in (8_000, 16_000, 22_050, 44_100):
        framing, filters = Framing(rate), mel_filters(rate)
        loudest = filters[:, round(1000 * framing.fourier / rate)].argmax()
        middle = 700 * (10 ** ((loudest + 1) / 27 * np.log10(1 + rate / 1400)) - 1)
        assert abs(middle - 1000) < 110  # a filter's width there


@pytest.mark.parametrize("rate", [1, 40, 1_000, 2_579])
def test_rates_too_low_for_the_filters_are_refused(rate: int) -> None:
    with pytest.raises(ValueError, match=rf"expected a rate at which each of 26 filters .* got {rate:,} Hz"):
        mfcc(chirp(), rate)


@pytest.mark.parametrize("rate", [0, -16_000, 16_000.0, True, "16000"])
def test_what_is_no_rate_is_refused(rate: int) -> None:
    with pytest.raises((TypeError, ValueError), match="expected rate to be"):
        mfcc(chirp(), rate)


def test_a_rate_beyond_all_measure_allocates_nothing() -> None:
    with pytest.raises(ValueError, match=r"expected at least 25,000,000,000,000 samples of one channel"):
        mfcc(chirp(), 10**15)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_samples_that_are_no_numbers_are_refused(wrong: float) -> None:
    signal = chirp().astype(np.float64)
    signal[700] = wrong
    with pytest.raises(ValueError, match=f"expected finite samples, got {wrong} at place 700"):
        mfcc(signal, 16_000)
    with pytest.raises(TypeError, match="expected samples that are real numbers, got complex128"):
        mfcc(chirp().astype(np.complex128), 16_000)
