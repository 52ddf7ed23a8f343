"""MNIST: images (number, 28, 28) of bytes, and their digits."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimrnn.data.cache import Arrays, cached
from slimrnn.data.directory import dataset_folder, find_file
from slimrnn.data.idx import read_idx
from slimrnn.errors import DataError

SIDE = 28
CLASSES = 10
SIZES = {"train": 60_000, "t10k": 10_000}
TRAINING = 55_000  # of the 60,000 training images; the last 5,000 validate
Bytes = NDArray[np.uint8]


def load_mnist(part: str) -> tuple[Bytes, Bytes]:
    """Images and digits of the parts "train" and "t10k"; a second call gives the same arrays, not to be written to."""
    return _load(part, dataset_folder("mnist").resolve())


def load_mnist_split(split: str) -> tuple[Bytes, Bytes]:
    """Images and digits of "train", "valid" or a test set."""
    if split not in ("train", "valid"):
        return load_mnist("t10k")
    images, labels = load_mnist("train")
    part = slice(None, TRAINING) if split == "train" else slice(TRAINING, None)
    return images[part], labels[part]


@lru_cache(maxsize=4)
def _load(part: str, folder: Path) -> tuple[Bytes, Bytes]:
    """`folder` is what the result depends on beside the part."""
    paths = [_find(f"{part}-images-idx3-ubyte"), _find(f"{part}-labels-idx1-ubyte")]
    arrays = cached(f"mnist-{part}-1", paths, lambda: _read(part, *paths))
    return arrays["images"].astype(np.uint8, copy=False), arrays["labels"].astype(np.uint8, copy=False)


def _find(name: str) -> Path:
    """Compressed, as it is distributed, or not."""
    plain = dataset_folder("mnist") / name
    return plain if plain.is_file() else find_file("mnist", f"{name}.gz")


def _read(part: str, images_path: Path, labels_path: Path) -> Arrays:
    size = SIZES[part]
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if images.shape != (size, SIDE, SIDE) or images.dtype != np.uint8:
        raise DataError(f"expected {size:,} × 28 × 28 bytes in {images_path}, got {images.shape} of {images.dtype}")
    if labels.shape != (size,) or labels.dtype != np.uint8:
        raise DataError(f"expected {size:,} bytes in {labels_path}, got {labels.shape} of {labels.dtype}")
    if labels.max() >= CLASSES:
        raise DataError(f"expected digits in {labels_path}, got {labels.max()}")
    return {"images": images, "labels": labels}
