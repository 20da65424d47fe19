from __future__ import annotations

from pathlib import Path

import gguf
import pytest


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    """A GGUF file with a vocabulary and one tensor's worth of nothing."""
    path = tmp_path / "Tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_context_length(2048)
    writer.add_token_list([b"a", b"<|im_start|>", b'<|"q"\\|>', b"\xff<x>", b"<think>"])
    writer.add_token_types([1, 3, 3, 3, 4])
    writer.add_chat_template("{{ messages }}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path
