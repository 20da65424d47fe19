from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

DOCUMENT = """\
version = 1

[mol]
served_model = "two"
base = "Base"
default = "L0"
summary_prompt_path = "prompts/summary.md"

[mol.route]
prompt_path = "prompts/route.md"

[[mol.adapters]]
label = "L0"
name = "Chat"
description = "Talk."
prompt_path = "prompts/chat.md"

[[mol.adapters]]
label = "L2"
name = "Code"
description = "Write code."
prompt_path = "prompts/code.md"

[engine]
kind = "vllm"
address = "http://127.0.0.1:8000"
base_model = "Base"
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the sample document, with pieces of its text exchanged, beside its prompts."""

    def _write(*changes: tuple[str, str], extra: str = "") -> Path:
        text = DOCUMENT
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        folder = tmp_path / "profile"
        (folder / "prompts").mkdir(parents=True, exist_ok=True)
        for name in ("route", "chat", "code", "summary"):
            (folder / "prompts" / f"{name}.md").write_text(f"The {name} prompt.\n")
        path = folder / "profile.toml"
        path.write_text(text + extra)
        return path

    return _write
