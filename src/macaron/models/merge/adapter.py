"""A LoRA in PEFT's format as what it adds to each tensor of its base (Hu et al., 2021, section 4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from macaron.errors import ConfigError
from macaron.models.peft import AdapterConfig, open_lora
from macaron.models.safetensors import TensorFile, as_floats
from macaron.models.source import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_NAME = 400
BLOCK_ELEMENTS = 4_194_304
"""Of a tensor at a time: 16 MiB as 32-bit numbers, whatever the size of the model."""

_KEY = re.compile(r"base_model\.model\.([A-Za-z0-9_.]+)\.lora_(?:([AB])\.weight|embedding_([AB]))")
_REMEDY = "PEFT can merge it: load it on the base, call merge_and_unload() and save the result"


class Pair(NamedTuple):
    """The names of the two matrices of one module.

    Attributes:
        embedding: whether they are of a look-up table, whose weight is the transpose of their product.
    """

    a: str
    b: str
    embedding: bool


class Delta(NamedTuple):
    """What is added to one weight of the base: `left` [rows, rank], scale included, times `right` [rank, columns]."""

    left: NDArray[np.float32]
    right: NDArray[np.float32]

    def rows(self, first: int, last: int) -> NDArray[np.float32]:
        """Some rows of the product."""
        return self.left[first:last] @ self.right


class Adapter(NamedTuple):
    """An adapter that can be merged; `pairs` by the module's name in the base, such as `model.layers.0.mlp.up_proj`."""

    config: AdapterConfig
    file: TensorFile
    pairs: Mapping[str, Pair]

    def shape(self, module: str) -> tuple[int, int]:
        """Rows and columns of the base's weight that a module's matrices are made for."""
        pair = self.pairs[module]
        outputs, inputs = self.file.tensors[pair.b].shape[0], self.file.tensors[pair.a].shape[1]
        return (inputs, outputs) if pair.embedding else (outputs, inputs)

    def delta(self, file: IO[bytes], module: str) -> Delta:
        """Read the two matrices of a module; `file` is the adapter's, opened.

        Raises:
            ConfigError: a value is not finite.
        """
        pair = self.pairs[module]
        a, b = self._matrix(file, pair.a), self._matrix(file, pair.b)
        return Delta(a.T * self.config.scale, b.T) if pair.embedding else Delta(b * self.config.scale, a)

    def check_values(self) -> None:
        """See that every value is finite and that the adapter has an effect at all.

        Raises:
            ConfigError: it is broken, or was never trained.
        """
        with self.file.path.open("rb") as file:
            effect = [delta.left.any() and delta.right.any() for delta in (self.delta(file, at) for at in self.pairs)]
        if not any(effect):
            reason = "changes nothing: every product of its matrices is zero; it was never trained"
            raise ConfigError(f"{self.file.path} {reason}", code="broken_adapter")

    def check_untied(self, tied: Iterable[str]) -> None:
        """See that it leaves the weights alone that the base uses in two places.

        Raises:
            ConfigError: it is for one of the modules `tied`.
        """
        for module in tied:
            if module in self.pairs:
                raise ConfigError(
                    f"{self.file.path}: {self.pairs[module].a} is for {module}, but the base has one tensor for its "
                    "embeddings and its output, and merging would change both; train without that module, or on a base "
                    "whose embeddings were untied",
                    param=module,
                    code="unsupported_adapter",
                )

    def check_shape(self, module: str, shape: Iterable[int]) -> None:
        """See that it fits the base's weight.

        Raises:
            ConfigError: the base's has another shape.
        """
        if self.shape(module) != (found := tuple(shape)):
            reason = f"is for a weight of the shape {list(self.shape(module))}, the base's has {list(found)}"
            raise ConfigError(
                f"{self.file.path}: {self.pairs[module].a} {reason}; it was trained on another base", param=module
            )

    def _matrix(self, file: IO[bytes], name: str) -> NDArray[np.float32]:
        import numpy as np

        tensor = self.file.tensors[name]
        values = as_floats(self.file.read(file, name), tensor.dtype).reshape(tensor.shape)
        if not np.isfinite(values).all():
            reason = "holds NaN or infinite values; the training went wrong, train it again"
            raise ConfigError(f"{self.file.path}: {name} {reason}", param=name, code="broken_adapter")
        return values


def read_adapter(folder: Path) -> Adapter:
    """Read an adapter's options and header. No tensor is read.

    Raises:
        ConfigError: a file cannot be read or is not what it says, an option or a tensor cannot be merged (it is named),
            or a matrix stands alone or has another rank than the options say.
    """
    if folder.is_file():
        remedy = "name the folder in PEFT's format that it was made from"
        raise ConfigError(f"{folder} is a file; {remedy}", param="adapter", code="unsupported_adapter")
    try:
        config, file = open_lora(folder)
    except ConfigError as error:
        remedy = f"; {_REMEDY}" if error.code == "unsupported_adapter" else ""
        raise ConfigError(f"{error.message}{remedy}", param=error.param, code=error.code) from None
    sides: dict[tuple[str, bool], dict[str, str]] = {}
    for name in file.tensors:
        match = _KEY.fullmatch(name) if len(name) <= MAX_NAME else None
        if match is None:
            reason = "is no LoRA matrix of a linear layer or an embedding"
            shown = printable(name[:200], 200)
            raise ConfigError(f"{file.path}: {shown} {reason}; {_REMEDY}", param=name[:200], code="unsupported_adapter")
        sides.setdefault((match[1], match[2] is None), {})[match[2] or match[3]] = name
    pairs = {module: _pair(file, found, embedding, config.rank) for (module, embedding), found in sides.items()}
    if len(pairs) != len(sides):
        raise ConfigError(f"{file.path} has one module twice; train the adapter again", code="broken_adapter")
    return Adapter(config, file, pairs)


def _pair(file: TensorFile, found: Mapping[str, str], embedding: bool, rank: int) -> Pair:
    for side, other in ("AB", "BA"):
        if other not in found:
            raise ConfigError(f"{file.path}: {found[side]} stands alone, without its lora_{other}", param=found[side])
    for side, place in (("A", 0), ("B", 1)):
        _check_matrix(file, found[side], place, rank)
    return Pair(found["A"], found["B"], embedding)


def _check_matrix(file: TensorFile, name: str, place: int, rank: int) -> None:
    shape = file.tensors[name].shape
    if len(shape) != 2 or shape[place] != rank or 0 in shape:
        wanted = f"[{rank}, inputs]" if place == 0 else f"[outputs, {rank}]"
        reason = f"has the shape {list(shape)}, rank {rank} asks for {wanted}"
        raise ConfigError(f"{file.path}: {name} {reason}; train the adapter again", param=name, code="broken_adapter")
