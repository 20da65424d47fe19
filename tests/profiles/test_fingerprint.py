"""The base of a profile as a fingerprint."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from macaron.errors import ConfigError
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.profiles.fingerprint import gguf_fingerprint, profile_base, profile_limits
from macaron.registry.check import Limits


def tiny(path: Path, *, change: float = 0.0, tokens: tuple[str, ...] = ("a", "b")) -> Path:
    """A GGUF file of one block, with two linear layers and a norm."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(8)
    writer.add_feed_forward_length(12)
    writer.add_head_count(2)
    writer.add_token_list(list(tokens))
    writer.add_tensor("blk.0.attn_norm.weight", np.full(8, 1 + change, np.float32))
    writer.add_tensor("blk.0.attn_q.weight", np.ones((8, 8), np.float16))
    writer.add_tensor("blk.0.ffn_up.weight", np.ones((12, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_gives_sizes_and_the_layers_an_adapter_may_name(tmp_path: Path) -> None:
    found = gguf_fingerprint(tiny(tmp_path / "x.gguf"), full="sha256:1")
    assert (found.name, found.architecture, found.layers, found.hidden, found.feed_forward) == ("x", "llama", 1, 8, 12)
    assert (found.heads, found.kv_heads, found.vocabulary, found.identity) == (2, 2, 2, "sha256:1")
    assert found.modules == {"model.layers.0.self_attn.q_proj": (8, 8), "model.layers.0.mlp.up_proj": (12, 8)}


def test_the_sample_is_of_the_weights_and_the_tokenizer_of_the_tokens(tmp_path: Path) -> None:
    one = gguf_fingerprint(tiny(tmp_path / "1.gguf"))
    same = gguf_fingerprint(tiny(tmp_path / "2.gguf"))
    weights = gguf_fingerprint(tiny(tmp_path / "3.gguf", change=0.5))
    tokens = gguf_fingerprint(tiny(tmp_path / "4.gguf", tokens=("a", "c")))
    assert (one.sample, one.tokenizer) == (same.sample, same.tokenizer)
    assert weights.sample != one.sample
    assert weights.tokenizer == one.tokenizer
    assert tokens.tokenizer != one.tokenizer


def test_the_sample_is_over_the_bytes_that_gguf_itself_reads(tmp_path: Path) -> None:
    """A table read wrongly would sample something else: the norm's value must be in it, wherever it lies."""
    path = tiny(tmp_path / "x.gguf")
    tensor = next(item for item in gguf.GGUFReader(path).tensors if item.name == "blk.0.attn_norm.weight")
    before = gguf_fingerprint(path).sample
    raw = bytearray(path.read_bytes())
    raw[tensor.data_offset + 31] ^= 1
    path.write_bytes(raw)
    assert gguf_fingerprint(path).sample != before


def test_a_file_that_is_cut_off_in_its_table_is_an_error(tmp_path: Path) -> None:
    path = tiny(tmp_path / "x.gguf")
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ConfigError, match=r"x\.gguf is not a usable GGUF file"):
        gguf_fingerprint(path)


def test_a_file_that_is_cut_off_in_its_tensors_is_another_base(tmp_path: Path) -> None:
    path = tiny(tmp_path / "x.gguf")
    whole = gguf_fingerprint(path).sample
    path.write_bytes(path.read_bytes()[:-100])
    assert gguf_fingerprint(path).sample != whole


def test_the_base_of_demi_is_the_one_its_contract_names(weights: Path) -> None:
    loaded = load(find_profile("demi"))
    found = profile_base(loaded)
    assert found.full == loaded.contract.mol.base_fingerprint
    assert (found.layers, found.hidden, found.vocabulary, len(found.modules)) == (30, 576, 49_152, 210)


def test_of_a_running_engine_s_base_only_the_name_is_known_without_its_folder() -> None:
    loaded = load(find_profile("venti"))
    found = profile_base(loaded)
    assert (found.name, found.modules, found.sample) == (loaded.contract.mol.base, {}, "")


def test_limits_are_those_of_the_engine() -> None:
    assert profile_limits(load(find_profile("demi"))).max_bytes == 4_294_967_296
    assert profile_limits(load(find_profile("venti"))).max_rank is None
    assert Limits().usual_rank is None
