"""The base as training reads it: the very weights that are served, dequantised once into a folder of safetensors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.models import Progress, fetch_weights, sha256_of, silent
from macaron.models.files import explained, locked
from macaron.train.config import Precision
from macaron.train.quiet import quiet_libraries

VERSION = "1"
"""Of what is written; another one is written beside it."""

_SPLITS_DIGITS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"})
"""Values of `tokenizer.ggml.pre` whose tokenizers take every digit by itself before all else."""


class Base(NamedTuple):
    """A base that can be trained on: its name in the profile, `sha256:<hex>` of its weights, and its two forms."""

    name: str
    fingerprint: str
    weights: Path
    folder: Path


def find_base(loaded: Loaded, *, cache_dir: Path | None = None, progress: Progress = silent) -> Base:
    """The base of a profile, fetched and dequantised if it is not here yet. Several processes may ask at once.

    Raises:
        ConfigError: the profile names no weights, they are not those of its fingerprint, or the disk is full.
        Unavailable: the network failed; running it again resumes.
    """
    base = locate_base(loaded, cache_dir=cache_dir, progress=progress)
    with explained(base.folder):
        base.folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(base.folder.with_name(f"{base.folder.name}.lock"), progress):
            if not base.folder.is_dir():
                _write(base)
    return base


def locate_base(loaded: Loaded, *, cache_dir: Path | None = None, progress: Progress = silent) -> Base:
    """The base of a profile with its weights here; its folder may not be written yet.

    Raises:
        ConfigError, Unavailable: as for `find_base`.
    """
    mol, section = loaded.contract.mol, loaded.contract.engine.weights
    if section is None:
        raise ConfigError(
            f"profile {mol.served_model!r} has no [engine.weights], so its base cannot be trained here; "
            "add the section to a copy of the profile",
            param="engine.weights",
        )
    weights = fetch_weights(section, folder=loaded.folder, progress=progress)
    fingerprint = f"sha256:{section.sha256 or sha256_of(weights, progress)}"
    if mol.base_fingerprint and mol.base_fingerprint != fingerprint:
        raise ConfigError(
            f"mol.base_fingerprint is {mol.base_fingerprint}, but the weights have {fingerprint}",
            param="mol.base_fingerprint",
        )
    cache = cache_dir or platformdirs.user_cache_path("macaron") / "bases"
    return Base(mol.base, fingerprint, weights, cache / f"{fingerprint.removeprefix('sha256:')[:16]}-{VERSION}")


def load_model(base: Base, precision: Precision = "float32") -> Any:
    """The base as a `transformers` causal language model.

    Args:
        precision: of its weights and of what it computes.
    """
    import torch
    from transformers import AutoModelForCausalLM

    with quiet_libraries():
        return AutoModelForCausalLM.from_pretrained(base.folder, dtype=getattr(torch, precision), local_files_only=True)


def load_tokenizer(base: Base) -> Any:
    """The base's tokenizer, a `transformers` fast tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(base.folder, local_files_only=True)


class BaseTokenizer:
    """A `transformers` tokenizer as encoding needs it."""

    def __init__(self, tokenizer: Any) -> None:
        self._backend = tokenizer.backend_tokenizer
        self.end: int = tokenizer.eos_token_id
        self._decode = tokenizer.decode

    def ids(self, text: str) -> list[int]:
        """Token ids of a text, nothing added; control tokens in it are the real ones."""
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def text(self, token: int) -> str:
        """What one token stands for."""
        text: str = self._decode([token], skip_special_tokens=False)
        return text


def _write(base: Base) -> None:
    part = base.folder.with_name(f"{base.folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with quiet_libraries():
            model, tokenizer = _read_gguf_model(base.weights)
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
        _split_digits(part / "tokenizer.json", base.weights)
        part.replace(base.folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _read_gguf_model(weights: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    names = {"pretrained_model_name_or_path": weights.parent, "gguf_file": weights.name, "local_files_only": True}
    read = AutoModelForCausalLM.from_pretrained(**names, dtype=torch.float32)
    # A model that was read from GGUF refuses to be saved: its values go into a fresh one.
    config = type(read.config).from_dict(
        {key: value for key, value in read.config.to_dict().items() if key != "quantization_config"}
    )
    model = type(read)(config).to(torch.float32)
    model.load_state_dict(read.state_dict())
    return model, AutoTokenizer.from_pretrained(**names)


def _split_digits(path: Path, weights: Path) -> None:
    """What the GGUF reader of `transformers` forgets: white space before a digit would be cut otherwise."""
    from gguf import GGUFReader

    field = GGUFReader(weights).fields.get("tokenizer.ggml.pre")
    if field is None or field.contents() not in _SPLITS_DIGITS:
        return
    table = json.loads(path.read_text("utf-8"))
    digits = {"type": "Digits", "individual_digits": True}
    table["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, table["pre_tokenizer"]]}
    path.write_text(json.dumps(table, ensure_ascii=False), "utf-8")
