"""Files of tensors: safetensors, whose metadata holds a format's name, its version, plain data and a checksum.

No pickle is ever read or written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slimrnn._texts import shown

VERSION = "1"
# What safetensors and torch raise for headers that are wrong, types that torch does not have, and sizes that overflow.
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, OverflowError)
CODES = {  # of the types that the files hold
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
Sizes = dict[str, tuple[tuple[int, ...], str]]  # the shape of each tensor, and the code of its type


def packed(kind: str, tensors: Mapping[str, Tensor], data: Any = None) -> tuple[bytes, str]:
    """The content of a file, and its checksum; `kind` is the name of the format, `data` anything that JSON can hold."""
    held = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    metadata = {"format": kind, "version": VERSION, "data": json.dumps(data)}
    found = checksum(metadata, held)
    return bytes(_safetensors().torch.save(held, metadata | {"checksum": found})), found


def read(
    path: Path,
    kind: str,
    error: type[Exception],
    check: Callable[[Sizes], None] | None = None,
    wanted: str | None = None,
) -> tuple[dict[str, Tensor], Any]:
    """The tensors and the data; `error` if the file is not what `packed` made. `check` sees the sizes before any tensor
    is read, and raises `error` if it does not want them; `wanted` is the checksum, where it is known."""
    library = _safetensors()
    try:
        with library.safe_open(path, "pt") as file:
            metadata = dict(file.metadata() or {})
            _check_format(metadata, kind, path, error)
            names = list(file.keys())
            if check is not None:
                slices = {name: file.get_slice(name) for name in names}
                check({name: (tuple(s.get_shape()), str(s.get_dtype())) for name, s in slices.items()})
            tensors = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise error(f"{path} does not exist") from None
    except error:
        raise
    except (library.SafetensorError, *_UNREADABLE) as failure:
        raise error(f"{path} is damaged or not a {kind} file: {failure}") from None
    told, found = metadata.pop("checksum", None), checksum(metadata, tensors)
    if told != found or wanted not in (None, found):
        raise error(f"{path} is damaged: its checksum does not fit its content")
    return tensors, _parsed(metadata.get("data"), path, error)


def _safetensors() -> Any:
    """Imported when asked for: not everybody has it."""
    try:
        import safetensors.torch
    except ModuleNotFoundError as error:
        message = "expected the package safetensors, for files of weights: pip install safetensors"
        raise ModuleNotFoundError(message, name=error.name) from None
    return safetensors


def _check_format(metadata: Mapping[str, str], kind: str, path: Path, error: type[Exception]) -> None:
    if metadata.get("format") != kind:
        raise error(f"{path} is not a {kind} file of slimrnn")
    if metadata.get("version") != VERSION:
        raise error(f"{path} has version {str(metadata.get('version'))[:20]} of its format, expected {VERSION}")


def _parsed(text: str | None, path: Path, error: type[Exception]) -> Any:
    if text is None:
        raise error(f"expected an entry data in the metadata of {path}, got none")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise error(f"expected JSON as data in the metadata of {path}, got {shown(text)}: {failure}") from None


def checksum(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """Covers everything in a file except the checksum itself."""
    digest = hashlib.blake2b(json.dumps(dict(metadata), sort_keys=True).encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
