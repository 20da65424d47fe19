"""Referenced files stay inside the document's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.hcp import load
from tests.hcp.conftest import Write


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return caught.value.message


@pytest.mark.parametrize(
    "value", ["/etc/hostname", "../secret.md", "prompts/../../secret.md", "a\\\\b", "", "a\\u0000b"]
)
def test_a_path_that_leaves_the_folder_is_refused(write: Write, tmp_path: Path, value: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    message = refusal(write(("prompts/code.md", value)))
    assert "mol.adapters.1.prompt_path: " in message
    assert "must be a relative path inside the document's folder" in message


def test_a_link_that_leads_out_is_refused(write: Write, tmp_path: Path) -> None:
    path = write()
    (tmp_path / "secret.md").write_text("secret")
    prompt = path.parent / "prompts" / "code.md"
    prompt.unlink()
    prompt.symlink_to(tmp_path / "secret.md")
    assert "leads out of the document's folder" in refusal(path)


def test_a_linked_folder_that_leads_out_is_refused(write: Write, tmp_path: Path) -> None:
    path = write(("prompts/code.md", "elsewhere/code.md"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "code.md").write_text("secret")
    (path.parent / "elsewhere").symlink_to(tmp_path / "other")
    assert "leads out of the document's folder" in refusal(path)


def test_a_link_inside_the_folder_is_followed(write: Write) -> None:
    path = write()
    prompt = path.parent / "prompts" / "code.md"
    prompt.unlink()
    prompt.symlink_to("chat.md")
    assert load(path).text("mol.adapters.L2.prompt_path") == "The chat prompt.\n"


def test_a_document_reached_through_a_link_finds_its_own_files(write: Write, tmp_path: Path) -> None:
    path = write()
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    assert load(link).path == path.resolve()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"caf\xe9", "is not UTF-8: byte 3"), (b" \n", "is empty"), (b"x" * 1_048_577, "is over 1048576 bytes")],
)
def test_an_unusable_prompt_is_refused(write: Write, content: bytes, reason: str) -> None:
    path = write()
    (path.parent / "prompts" / "code.md").write_bytes(content)
    assert reason in refusal(path)


def test_a_missing_prompt_is_found_beside_other_problems(write: Write) -> None:
    path = write(('default = "L0"', 'default = "L9"'))
    (path.parent / "prompts" / "code.md").unlink()
    message = refusal(path)
    assert "'prompts/code.md' does not exist" in message
    assert "'L9' is none of the labels" in message
