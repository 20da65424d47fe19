"""The registry made from a contract."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.hcp import Loaded, load
from macaron.registry import registry_from
from macaron.registry.revision import adapter_revision

DOCUMENT = """\
[mol]
served_model = "m"
base = "Base"
default = "L1"
summary = "off"
[mol.route]
prompt_path = "route.md"
[[mol.adapters]]
label = "L0"
name = "Chat"
description = "Talks."
prompt_path = "chat.md"
{first}
[[mol.adapters]]
label = "L1"
name = "Life"
description = "Plans  and\\nbooks."
boundary = "chat."
prompt_path = "life.md"
{second}
[engine]
kind = "{kind}"
address = "http://127.0.0.1:8000"
base_model = "Base"
"""


def loaded(folder: Path, first: str = "", second: str = "", kind: str = "vllm") -> Loaded:
    (folder / "route.md").write_text("\nChoose one of {labels}:\n{cards}\nNow.\n")
    (folder / "chat.md").write_text("You chat.\n")
    (folder / "life.md").write_text("You plan.\n")
    path = folder / "profile.toml"
    path.write_text(DOCUMENT.format(first=first, second=second, kind=kind))
    return load(path)


def test_specialists_are_found_by_label_and_by_revision(tmp_path: Path) -> None:
    registry = registry_from(loaded(tmp_path))
    life = registry.get("L1")
    assert life is not None
    assert life.identity == "You plan."
    assert registry.by_revision(life.revision) is life
    assert registry.get("L9") is None
    assert registry.by_revision("sha256:0") is None
    assert (registry.labels, registry.entry, registry.default) == (("L0", "L1"), "L0", "L1")


def test_a_prompt_only_revision_names_the_prompt_and_the_base(tmp_path: Path) -> None:
    before = registry_from(loaded(tmp_path)).specialists[0]
    assert before.revision == "prompt:" + hashlib.sha256(b"Base\0You chat.").hexdigest()[:12]
    assert (before.state, before.engine_name) == ("prompt", None)
    held = loaded(tmp_path)
    (tmp_path / "chat.md").write_text("You chat kindly.\n")
    assert registry_from(held).specialists[0].revision == before.revision
    assert registry_from(load(held.path)).specialists[0].revision != before.revision


def test_another_model_gives_a_prompt_another_revision(tmp_path: Path) -> None:
    plain = registry_from(loaded(tmp_path, kind="openai"))
    other = registry_from(loaded(tmp_path, first='model = "big"', kind="openai"))
    assert other.specialists[0].model == "big"
    assert other.specialists[0].revision != plain.specialists[0].revision
    assert other.specialists[1].revision == plain.specialists[1].revision


def test_an_adapter_that_only_the_engine_has_is_unverified(tmp_path: Path) -> None:
    registry = registry_from(loaded(tmp_path, second='engine_name = "life-7"'))
    life = registry.specialists[1]
    assert (life.revision, life.state, life.engine_name) == ("unverified:life-7", "unverified", "life-7")
    assert not registry.prompt_only


def test_an_adapter_file_is_named_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "life.gguf").write_bytes(b"adapter")
    registry = registry_from(loaded(tmp_path, second='source = "life.gguf"'))
    life = registry.specialists[1]
    assert life.revision == "sha256:" + hashlib.sha256(b"adapter").hexdigest()
    assert (life.state, life.engine_name) == ("verified", "L1")


def test_an_adapter_folder_is_named_by_its_two_files_only(tmp_path: Path) -> None:
    source = tmp_path / "lora"
    source.mkdir()
    (source / "adapter_config.json").write_text("{}")
    (source / "adapter_model.safetensors").write_bytes(b"weights")
    before = adapter_revision(source)
    (source / "README.md").write_text("notes")
    assert adapter_revision(source) == before
    (source / "adapter_config.json").write_text('{"r": 8}')
    assert adapter_revision(source) != before
    (source / "adapter_model.safetensors").unlink()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        adapter_revision(source)


def test_a_revision_may_be_shortened_but_not_wrong(tmp_path: Path) -> None:
    (tmp_path / "life.gguf").write_bytes(b"adapter")
    full = "sha256:" + hashlib.sha256(b"adapter").hexdigest()
    held = loaded(tmp_path, second=f'source = "life.gguf"\nrevision = "{full[:19]}"')
    assert registry_from(held).specialists[1].revision == full
    (tmp_path / "life.gguf").write_bytes(b"another")
    with pytest.raises(ConfigError, match=r"mol\.adapters\.L1\.revision is sha256:.*, but life\.gguf has sha256:"):
        registry_from(held)


def test_labels_and_cards_are_filled_into_a_prompt(tmp_path: Path) -> None:
    held = loaded(tmp_path)
    registry = registry_from(held)
    assert registry.prompt_only
    assert registry.fill(held.text("mol.route.prompt_path")) == (
        "Choose one of L0, L1:\nL0: Talks.\nL1: Plans and books. Not for: chat.\nNow."
    )


def test_a_hop_names_an_adapter_another_model_or_nothing(tmp_path: Path) -> None:
    assert [item.adapter for item in registry_from(loaded(tmp_path, second='engine_name = "x"')).specialists] == [
        None,
        "x",
    ]
    other = registry_from(loaded(tmp_path, first='model = "big"', kind="openai"))
    assert other.entry_specialist.adapter == "big"
    assert other.default_specialist.label == "L1"


def test_nine_specialists_work_as_four_do(tmp_path: Path) -> None:
    more = "".join(
        f'[[mol.adapters]]\nlabel = "S{number}"\nname = "S"\ndescription = "Does {number}."\nprompt_path = "chat.md"\n'
        for number in range(7)
    )
    registry = registry_from(loaded(tmp_path, second=more))
    assert registry.fill("{labels}") == "L0, L1, S0, S1, S2, S3, S4, S5, S6"
    assert registry.fill("{cards}").count("\n") == 8
