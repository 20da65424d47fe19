"""Wheels of our own, sound and hostile."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

NAME = "tiny_rows-1.0-py3-none-any.whl"
REQUIREMENT = "tiny-rows==1.0"


def wheel(path: Path, files: Mapping[str, bytes]) -> Path:
    """A wheel with its metadata and these files."""
    info = "tiny_rows-1.0.dist-info"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-rows\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def archive_of(path: Path, *members: zipfile.ZipInfo | str) -> Path:
    """An archive with members of these names, or exactly these."""
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, b"content")
    return path
