"""Adapters of a profile, as files in the cache that the embedded engine loads."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import pytest
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.hcp import Loaded, load
from macaron.profiles.adapters import engine_adapters, gguf_adapter
from macaron.registry import registry_from
from macaron.registry.revision import adapter_revision
from tests.models.peft_folder import TINY, tensors, write_base, write_folder

DOCUMENT = """\
[mol]
served_model = "m"
base = "Base"
default = "L1"
summary = "off"
[mol.route]
prompt_path = "prompt.md"
[[mol.adapters]]
label = "L0"
name = "Chat"
description = "Talks."
prompt_path = "prompt.md"
[[mol.adapters]]
label = "L1"
name = "Life"
description = "Plans."
prompt_path = "prompt.md"
source = "{source}"
[engine]
kind = "llamacpp"
[engine.weights]
file = "base.gguf"
path = "base.gguf"
"""


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_base(tmp_path / "base.gguf")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def profile(folder: Path, source: str = "adapters/L1") -> Loaded:
    write_base(folder / "base.gguf")
    (folder / "prompt.md").write_text("Choose.\n")
    (folder / "profile.toml").write_text(DOCUMENT.format(source=source))
    return load(folder / "profile.toml")


def test_a_folder_of_a_profile_becomes_a_file_with_the_folders_revision(tmp_path: Path, cache: Path) -> None:
    source = write_folder(tmp_path / "adapters" / "L1")
    loaded = profile(tmp_path)
    registry = registry_from(loaded)
    specialist = registry.get("L1")
    assert specialist is not None
    assert (specialist.revision, specialist.state) == (adapter_revision(source), "verified")
    (path,) = engine_adapters(loaded, registry, tmp_path / "base.gguf", cache_dir=cache)
    assert path.name.startswith(specialist.revision.removeprefix("sha256:"))
    assert len(gguf.GGUFReader(path).tensors) == len(tensors())


def test_an_adapter_that_was_converted_before_is_found_by_its_revision_and_not_read_again(
    tmp_path: Path, cache: Path
) -> None:
    source = write_folder(tmp_path / "adapters" / "L1")
    loaded = profile(tmp_path)
    registry = registry_from(loaded)
    first = engine_adapters(loaded, registry, tmp_path / "base.gguf", cache_dir=cache)
    (source / "adapter_model.safetensors").write_bytes(b"changed")
    assert engine_adapters(loaded, registry, tmp_path / "base.gguf", cache_dir=cache) == first


def test_an_adapter_that_changed_since_it_was_hashed_is_not_converted(tmp_path: Path, cache: Path) -> None:
    write_folder(tmp_path / "adapters" / "L1")
    loaded = profile(tmp_path)
    registry = registry_from(loaded)
    write_folder(tmp_path / "adapters" / "L1", lora_dropout=0.5)
    with pytest.raises(ConfigError, match="changed while it was converted"):
        engine_adapters(loaded, registry, tmp_path / "base.gguf", cache_dir=cache)


def test_a_gguf_file_is_given_back_as_it_is(tmp_path: Path, weights: Path, cache: Path) -> None:
    source = gguf_adapter(write_folder(tmp_path / "a"), weights, cache_dir=cache)
    assert gguf_adapter(source, weights, cache_dir=cache) is source


def test_an_adapter_is_converted_once(tmp_path: Path, weights: Path, cache: Path) -> None:
    source = write_folder(tmp_path / "a")
    first = gguf_adapter(source, weights, cache_dir=cache)
    written = first.stat()
    second = gguf_adapter(shutil.copytree(source, tmp_path / "copy"), weights, cache_dir=cache)
    assert second == first
    assert second.stat() == written


def test_many_at_once_convert_once_and_leave_nothing_half_written(tmp_path: Path, weights: Path, cache: Path) -> None:
    source = write_folder(tmp_path / "a")
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: gguf_adapter(source, weights, cache_dir=cache), range(8)))
    (path,) = paths
    assert {item.suffix for item in path.parent.iterdir()} == {".gguf", ".lock"}


def test_other_bytes_and_other_bases_have_files_of_their_own(tmp_path: Path, weights: Path, cache: Path) -> None:
    source = write_folder(tmp_path / "a")
    other = write_folder(tmp_path / "b", tensors(seed=1))
    # As wide, but rows of q and k are in another order.
    base = write_base(tmp_path / "heads.gguf", replace(TINY, heads=2, kv_heads=1, head_width=8))
    made = [(source, weights), (other, weights), (source, base)]
    assert len({gguf_adapter(*pair, cache_dir=cache).read_bytes() for pair in made}) == 3


def test_a_refused_adapter_leaves_nothing_in_the_cache(tmp_path: Path, weights: Path, cache: Path) -> None:
    source = write_folder(tmp_path / "a", use_dora=True)
    with pytest.raises(ConfigError, match="use_dora"):
        gguf_adapter(source, weights, cache_dir=cache)
    assert {item.suffix for item in (cache / "adapters").iterdir()} == {".lock"}


def test_the_specialist_of_a_refused_adapter_is_named(tmp_path: Path, cache: Path) -> None:
    write_folder(tmp_path / "adapters" / "L1", use_dora=True)
    loaded = profile(tmp_path)
    with pytest.raises(ConfigError, match=r"^mol\.adapters\.L1\.source: .*use_dora") as caught:
        engine_adapters(loaded, registry_from(loaded), tmp_path / "base.gguf", cache_dir=cache)
    assert caught.value.param == "mol.adapters.L1.source"


def test_a_base_of_another_architecture_is_refused_with_a_remedy(tmp_path: Path, cache: Path) -> None:
    weights = write_base(tmp_path / "gemma.gguf", architecture="gemma3")
    with pytest.raises(ConfigError, match=r"architecture 'gemma3'.*name a GGUF file of the adapter"):
        gguf_adapter(write_folder(tmp_path / "a"), weights, cache_dir=cache)


def test_what_is_neither_a_file_nor_a_folder_of_an_adapter_is_refused(
    tmp_path: Path, weights: Path, cache: Path
) -> None:
    other = tmp_path / "a.gguf"
    other.write_bytes(b"not one")
    for source in (other, tmp_path / "nothing"):
        with pytest.raises(ConfigError, match="is neither a GGUF file nor a folder"):
            gguf_adapter(source, weights, cache_dir=cache)


def test_a_folder_without_weights_is_refused(tmp_path: Path, weights: Path, cache: Path) -> None:
    source = write_folder(tmp_path / "a")
    (source / "adapter_model.safetensors").unlink()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        gguf_adapter(source, weights, cache_dir=cache)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written"):
        gguf_adapter(write_folder(tmp_path / "a"), weights, cache_dir=tmp_path / "cache")


@pytest.mark.parametrize("name", ["L1.safetensors", "L1.bin", "L1.pt"])
def test_weights_without_their_configuration_are_refused_when_the_contract_is_loaded(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(ConfigError, match="must be a GGUF file, or the folder with"):
        profile(tmp_path, name)


def test_a_source_that_is_not_there_is_refused_when_the_contract_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        profile(tmp_path)
