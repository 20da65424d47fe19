"""What a GGUF file says about itself, read by our reader and written by the reference library."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.hcp import load
from macaron.models import fetch_weights, read_gguf
from macaron.profiles import find_profile


def written(path: Path, *, kind: str = "model", tokens: tuple[bytes, ...] = (b"a", b"<|end|>", b"b\xff")) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type(kind)
    writer.add_name("Tiny")
    writer.add_context_length(4096)
    writer.add_rope_freq_base(10000.0)
    writer.add_bool("flag", True)
    writer.add_token_list(list(tokens))
    writer.add_token_types([3 if token.startswith(b"<|") else 1 for token in tokens])
    writer.add_chat_template("{{ x }}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_metadata_is_read(tmp_path: Path) -> None:
    info = read_gguf(written(tmp_path / "m.gguf"))
    assert (info.name, info.architecture, info.context_length) == ("Tiny", "llama", 4096)
    assert info.control_tokens == ("<|end|>",)
    assert info.chat_template == "{{ x }}"


def test_an_adapter_is_no_base(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a model but of type 'adapter'"):
        read_gguf(written(tmp_path / "m.gguf", kind="adapter"))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "cut off"),
        (b"GGML" + bytes(20), "does not begin with GGUF"),
        (b"GGUF\x00\x00\x00\x03" + bytes(16), "big-endian"),
        (b"GGUF\x03\x00\x00\x00" + bytes(8) + b"\xff" * 8, "more than can be"),
        (b"GGUF\x03\x00\x00\x00" + bytes(8) + b"\x01" + bytes(7) + b"\xff" * 8, "more than can be"),
    ],
)
def test_what_is_no_gguf_is_refused(tmp_path: Path, raw: bytes, reason: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=reason):
        read_gguf(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_gguf(tmp_path / "none.gguf")


@given(cut=st.integers(0, 400), position=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, position: int, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    raw = bytearray(written(folder / "sound.gguf").read_bytes())
    raw[position % len(raw)] = byte
    path = folder / "m.gguf"
    path.write_bytes(raw[: len(raw) - cut])
    with suppress(ConfigError):
        read_gguf(path)


@pytest.mark.engine
def test_the_special_tokens_of_demi_are_those_of_its_weights() -> None:
    engine = load(find_profile("demi")).contract.engine
    assert engine.weights is not None
    path = fetch_weights(engine.weights)
    reader = gguf.GGUFReader(path)
    tokens, kinds = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type"))
    control = tuple(token for token, kind in zip(tokens, kinds, strict=True) if kind == gguf.TokenType.CONTROL)
    assert engine.special_tokens == control == read_gguf(path).control_tokens
