"""The fingerprint of a base in safetensors, and its sample."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from macaron.errors import ConfigError
from macaron.registry.check import Extent, check_adapter, safetensors_fingerprint, sample_digest
from macaron.registry.check.base import SAMPLED_TENSORS, WINDOW, windows
from tests.models.peft_folder import TINY
from tests.registry.check.adapters import adapter, tiny_base

SETTINGS = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 16, "intermediate_size": 24,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 32,
}  # fmt: skip


def weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    sizes: dict[str, tuple[int, ...]] = {f"{name}.weight": size for name, size in tiny_base().modules.items()}
    sizes |= {"model.embed_tokens.weight": (32, 16), "model.norm.weight": (16,)}
    return {name: random.normal(size=size).astype("f4") for name, size in sizes.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
    save_file(weights(), tmp_path / "model.safetensors")
    return tmp_path


def sharded(folder: Path) -> Path:
    tensors = weights()
    (folder / "model.safetensors").unlink()
    half = len(tensors) // 2
    files = {name: f"part-{number >= half}.safetensors" for number, name in enumerate(tensors)}
    for file in set(files.values()):
        save_file({name: tensors[name] for name in tensors if files[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    return folder


def test_the_fingerprint_has_sizes_and_the_layers_an_adapter_may_name(folder: Path) -> None:
    found = safetensors_fingerprint(folder, name="tiny", full="sha256:1")
    assert (found.architecture, found.layers, found.hidden, found.heads) == ("llama", TINY.layers, 16, 4)
    assert (found.kv_heads, found.vocabulary, found.identity) == (2, 32, "sha256:1")
    assert found.modules == tiny_base().modules
    assert safetensors_fingerprint(folder).identity.startswith("sample1:")


def test_an_adapter_is_checked_against_it(folder: Path, tmp_path: Path) -> None:
    base = safetensors_fingerprint(folder, name="tiny")
    assert check_adapter(adapter(tmp_path / "a"), base).ok


def test_shards_give_the_sample_of_the_whole(folder: Path) -> None:
    whole = safetensors_fingerprint(folder)
    assert safetensors_fingerprint(sharded(folder)).sample == whole.sample


def test_another_value_shape_or_name_gives_another_sample(folder: Path) -> None:
    samples = {safetensors_fingerprint(folder).sample}
    for change in ("value", "shape", "name"):
        tensors = weights()
        norm = tensors.pop("model.norm.weight")
        key = "model.norm.bias" if change == "name" else "model.norm.weight"
        tensors[key] = norm + 1 if change == "value" else norm.reshape(4, 4) if change == "shape" else norm
        save_file(tensors, folder / "model.safetensors")
        samples.add(safetensors_fingerprint(folder).sample)
    assert len(samples) == 4


def test_the_sample_is_bounded_whatever_the_size(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**40)
    extents = [Extent(f"t{number:05}", "F32", (2**18,), path, number * 2**20, 2**20) for number in range(100_000)]
    assert sample_digest(extents) == sample_digest(reversed(extents))
    assert sum(count for _, count in windows(2**40)) == 3 * WINDOW
    assert SAMPLED_TENSORS * 3 * WINDOW == 196_608


def test_the_sample_is_what_its_specification_says(tmp_path: Path) -> None:
    raw = bytes(range(251)) * 64
    (tmp_path / "x").write_bytes(raw)
    extents = [
        Extent("b", "F32", (2, 3), tmp_path / "x", 0, 24),
        Extent("a", "Q4", (4000,), tmp_path / "x", 24, 16_000),
    ]
    lines = b"macaron-base-sample1\n" + b"a\0Q4\0" + b"4000\0" + b"16000\n" + b"b\0F32\0" + b"2x3\0" + b"24\n"
    sampled = raw[24:1048] + raw[7512:8536] + raw[15_000:16_024] + raw[:24]
    assert sample_digest(extents) == "sample1:" + hashlib.sha256(lines + sampled).hexdigest()


def test_an_index_that_names_no_files_beside_it_is_refused(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x"}}')
    with pytest.raises(ConfigError, match=r"index\.json names"):
        safetensors_fingerprint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_base_that_is_not_whole_is_an_error(name: str, folder: Path) -> None:
    raw = (folder / name).read_bytes()
    (folder / name).write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ConfigError, match="usable"):
        safetensors_fingerprint(folder)
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=r"cannot be read|has neither"):
        safetensors_fingerprint(folder)
