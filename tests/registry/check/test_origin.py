"""Licence and provenance: what an adapter says of itself, and what contradicts its bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from macaron.registry.check import check_adapter
from tests.registry.check.adapters import FULL, adapter, found, tiny_base


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return adapter(tmp_path / "a")


def run(folder: Path, **fields: Any) -> Path:
    record = {"id": "L4-1", "status": "finished", "data": [{"sha256": "sha256:1"}], "base_fingerprint": FULL}
    (folder / "run.json").write_text(json.dumps({**record, **fields}))
    return folder


def test_an_adapter_that_says_nothing_has_warnings(folder: Path) -> None:
    findings = found(folder)
    assert findings["no_licence"].severity == "warning"
    assert findings["no_provenance"].severity == "warning"
    assert findings["base_unproven"].severity == "note"


@pytest.mark.parametrize(
    ("name", "text", "licence"),
    [
        ("README.md", "---\nlicense: 'mit'\n---\n", "mit"),
        ("LICENSE", "words", "LICENSE"),
        ("README.md", "license: mit", ""),
        ("README.md", "---\nx: 1\n---\nlicense: mit", ""),
    ],
)
def test_the_licence_is_of_the_front_matter_or_a_file(name: str, text: str, licence: str, folder: Path) -> None:
    (folder / name).write_text(text)
    report = check_adapter(folder, tiny_base())
    assert report.licence == licence
    assert any(item.code == "no_licence" for item in report.findings) == (not licence)


def test_bytes_that_did_not_come_out_of_the_run_are_an_error(folder: Path) -> None:
    finding = found(run(folder, adapter={"revision": "sha256:" + "0" * 64}))["other_revision"]
    assert finding.severity == "error"


def test_a_run_on_another_base_is_an_error(folder: Path) -> None:
    finding = found(run(folder, base_fingerprint="sha256:" + "c" * 64))["other_base"]
    assert finding.severity == "error"
    assert FULL in finding.message


def test_a_run_that_did_not_finish_is_a_warning(folder: Path) -> None:
    assert found(run(folder, status="stopped"))["unfinished_run"].value == "stopped"


def test_a_run_without_data_is_a_warning(folder: Path) -> None:
    assert "no_data" in found(run(folder, data=[]))


@pytest.mark.parametrize("text", ["{", "[]", '{"id": 1}', '{"data": 5}', "[" * 100_000])
def test_a_broken_record_is_a_warning(text: str, folder: Path) -> None:
    (folder / "run.json").write_text(text)
    assert found(folder)["bad_provenance"].severity == "warning"
