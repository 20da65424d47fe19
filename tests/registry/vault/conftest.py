"""A vault, and an adapter under one of the operator's roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.registry.vault import Vault
from tests.registry.check.adapters import adapter


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The operator's root."""
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def source(root: Path) -> Path:
    """An adapter that passes its check, with a card and a file that no vault wants."""
    folder = adapter(root / "team" / "law")
    (folder / "README.md").write_text("---\nlicense: MIT\n---\n")
    (folder / "optimizer.pt").write_bytes(b"\x80\x04.")
    return folder


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Empty."""
    return Vault(tmp_path / "vault")
