"""Features of speech against another implementation and against what is known of simple signals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from slimrnn.data.mfcc import derivative, frames_in, mel_filters, mfcc


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
    features = mfcc(chirp())
    assert features.shape == (11, 26)
    assert features[frame] == pytest.approx(ORACLE[frame], abs=1e-9)  # the oracle's ten places


@pytest.mark.parametrize(("samples", "frames"), [(0, 0), (399, 0), (400, 1), (559, 1), (560, 2), (16_000, 98)])
def test_only_whole_frames_count(samples: int, frames: int) -> None:
    assert frames_in(samples) == frames
    if frames:
        assert mfcc(np.ones(samples, np.int16)).shape == (frames, 26)
    else:
        with pytest.raises(
            ValueError, match=rf"expected at least 400 samples of one channel, got shape \({samples},\)"
        ):
            mfcc(np.ones(samples, np.int16))


def test_louder_speech_changes_the_energy_alone() -> None:
    quiet, loud = mfcc(chirp()), mfcc(2.0 * chirp())
    louder = np.zeros(26)
    louder[12] = np.log(4)
    assert loud - quiet == pytest.approx(np.broadcast_to(louder, quiet.shape), abs=1e-9)


def test_a_frame_depends_on_its_samples_alone() -> None:
    """But for the one before, by the pre-emphasis, and the derivatives, by two frames to each side."""
    changed = chirp()
    changed[:799] = 0  # frame 5 begins at 800
    assert np.array_equal(mfcc(changed)[5:, :13], mfcc(chirp())[5:, :13])
    assert np.array_equal(mfcc(changed)[7:], mfcc(chirp())[7:])


def test_filters_are_triangles_at_equal_distances_in_mel() -> None:
    filters, step = mel_filters(), 16_000 / 512
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
    features = mfcc(np.zeros(1000, np.int16))
    assert np.isfinite(features).all()
    assert np.all(features[:, 13:] == 0)
