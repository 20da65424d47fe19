"""Reading `adapter_model.safetensors`: whole, bounded, and as numbers that are numbers."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from macaron.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS_FILE = "adapter_model.safetensors"
MAX_BYTES = 4_294_967_296
MAX_HEADER_BYTES = 33_554_432
MAX_RANGE = 65_504.0
"""The largest number of 16 bits."""


def read_tensors(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Tensors by name, each with `shape`, `dtype` and `data`, their bytes. Sizes and offsets are found to agree.

    Raises:
        ConfigError: there is no such file, it is larger than `MAX_BYTES`, or it is not what it says.
    """
    from safetensors import SafetensorError, deserialize

    path = folder / WEIGHTS_FILE
    raw = _read(path)
    try:
        return dict(deserialize(raw))  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise ConfigError(f"{path} is not a usable safetensors file: {error}") from None


def as_half(name: str, tensor: Mapping[str, Any], path: Path) -> NDArray[np.float16]:
    """A tensor as 16-bit numbers, in its own shape.

    Raises:
        ConfigError: it is of another type than F16, BF16 or F32, or a value is not finite in 16 bits.
    """
    values = _numbers(name, tensor, path)
    import numpy as np

    # Also false for what is not a number.
    if values.size and not np.abs(values).max() <= MAX_RANGE:
        reason = f"holds NaN, infinite or larger values than {MAX_RANGE:g}; the training went wrong, train it again"
        raise ConfigError(f"{path}: {name} {reason}", param=name, code="broken_adapter")
    return values.astype(np.float16).reshape(tensor["shape"])


def _numbers(name: str, tensor: Mapping[str, Any], path: Path) -> NDArray[Any]:
    import numpy as np

    match tensor["dtype"]:
        case "F32":
            return np.frombuffer(tensor["data"], "<f4")
        case "F16":
            return np.frombuffer(tensor["data"], "<f2")
        case "BF16":
            # The upper half of a 32-bit number.
            return (np.frombuffer(tensor["data"], "<u2").astype("<u4") << 16).view("<f4")
        case other:
            raise ConfigError(f"{path}: {name} is of type {other}; save the adapter as F16, BF16 or F32", param=name)


def _read(path: Path) -> bytes:
    pickled = path.with_name("adapter_model.bin")
    if not path.exists() and pickled.exists():
        remedy = f"save the adapter as {WEIGHTS_FILE}, with safe_serialization=True in PEFT"
        raise ConfigError(f"{pickled} is a pickle, which can run code when it is read, and is never opened; {remedy}")
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path} is not a file")
        if status.st_size > MAX_BYTES:
            raise ConfigError(f"{path} has {status.st_size} bytes, more than the {MAX_BYTES} of any adapter here")
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > MAX_HEADER_BYTES:
                raise ConfigError(f"{path} is not a usable safetensors file: its header would have {length} bytes")
            file.seek(0)
            return file.read(status.st_size)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
