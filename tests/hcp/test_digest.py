"""The digest: golden vectors, and the laws it obeys."""

from __future__ import annotations

import hashlib
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.hcp import canonical, digest_of, load
from tests.hcp.conftest import Write

TEXT_HASH = "sha256:" + hashlib.sha256(b"Sort it.\n").hexdigest()

# Each: a document, the files it refers to, its canonical form written by hand, its digest.
GOLDEN = [
    ("", {}, "{}", "hcp1:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    (
        'version = 1\n[mol]\nserved_model = "m"\nsummary_wait = 2.0\nroute_tokens = 24\nspeculate = false\n',
        {},
        '{"mol":{"route_tokens":24,"served_model":"m","speculate":false,"summary_wait":2},"version":1}',
        "hcp1:2cd76e795fa20f7df372e3b5facb27f0caa151d790ddb541d44a3810a4058f4e",
    ),
    (
        '[mol.route]\nprompt_path = "prompts/route.md"\n',
        {("mol", "route", "prompt_path"): b"Sort it.\n"},
        f'{{"mol":{{"route":{{"prompt_path":"{TEXT_HASH}"}}}}}}',
        "hcp1:9c15d057945c33eddf4fbd894abc34cfd14d9e1790ea48d249e94a1e32a3fa42",
    ),
    (
        '[mcp.mcpServers.files]\ncommand = "x"\nbearerTokenEnv = "TOKEN"\n[model]\nmodel = "gpt"\nnewer = "é€"\n',
        {},
        '{"mcp":{"servers":{"files":{"bearer_token_env":"TOKEN","command":"x"}}},"model":{"id":"gpt","newer":"é€"}}',
        "hcp1:054afeeebc792a1cf09d686046fa81c3c23b551580bc11a9ab353af8fd19e7db",
    ),
    (
        '[[mol.adapters]]\nsource = "./loras//cafe\\u0301"\n[engine.weights]\npath = "/here/m.gguf"\nsha256 = "ab"\n',
        {},
        '{"engine":{"weights":{"path":"sha256:ab","sha256":"ab"}},"mol":{"adapters":[{"source":"loras/café"}]}}',
        "hcp1:ca64da46d752c049460e0c1d5a0a7f04e8a7037c932057ce7341bc1828908130",
    ),
]


@pytest.mark.parametrize(("text", "files", "form", "digest"), GOLDEN)
def test_golden_vectors(text: str, files: dict[tuple[str | int, ...], bytes], form: str, digest: str) -> None:
    document = tomllib.loads(text)
    assert canonical(document, files).decode() == form
    assert digest_of(document, files) == digest


def test_an_alias_beside_its_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.model is another spelling of id"):
        digest_of({"model": {"model": "a", "id": "a"}}, {})


def test_a_loaded_contract_has_the_digest_of_its_document(write: Write) -> None:
    path = write()
    table = tomllib.loads(path.read_text())
    prompts = path.parent / "prompts"
    files: dict[tuple[str | int, ...], bytes] = {
        ("mol", "route", "prompt_path"): (prompts / "route.md").read_bytes(),
        ("mol", "summary_prompt_path"): (prompts / "summary.md").read_bytes(),
        ("mol", "adapters", 0, "prompt_path"): (prompts / "chat.md").read_bytes(),
        ("mol", "adapters", 1, "prompt_path"): (prompts / "code.md").read_bytes(),
    }
    assert load(path).digest == digest_of(table, files)


def test_comments_and_white_space_do_not_change_it(write: Write) -> None:
    before = load(write()).digest
    changed = write(("[mol]", "# a comment\n\n[ mol ]"), ('base = "Base"', 'base   =   "Base"  # the base'))
    assert load(changed).digest == before


def test_the_place_of_the_folder_does_not_change_it(write: Write, tmp_path: Path) -> None:
    path = write()
    before = load(path).digest
    path.parent.rename(tmp_path / "moved")
    assert load(tmp_path / "moved" / "profile.toml").digest == before


def test_a_renamed_prompt_is_the_same_contract_and_an_edited_one_is_not(write: Write) -> None:
    path = write()
    before = load(path).digest
    prompt = path.parent / "prompts" / "code.md"
    renamed = write(("prompts/code.md", "prompts/other.md"))
    prompt.rename(prompt.with_name("other.md"))
    assert load(renamed).digest == before
    prompt.with_name("other.md").write_text("Another prompt.\n")
    assert load(renamed).digest != before


def test_a_written_default_is_another_document(write: Write) -> None:
    before = load(write()).digest
    assert load(write(('default = "L0"', 'default = "L0"\nroute_tokens = 24'))).digest != before


def test_the_value_of_an_environment_variable_does_not_count(write: Write) -> None:
    path = write(('base_model = "Base"', 'base_model = "Base"\napi_key_env = "KEY"'))
    assert load(path, env={"KEY": "a"}).digest == load(path, env={"KEY": "b"}).digest


keys = st.text("abcdefgh_", min_size=1, max_size=6)
leaves = st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e9, 1e9) | st.text(max_size=8)
values = st.recursive(leaves, lambda item: st.lists(item, max_size=3) | st.dictionaries(keys, item, max_size=3))
documents = st.dictionaries(keys, values, max_size=4)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in sorted(value, reverse=True)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(documents)
def test_key_order_does_not_change_it(document: dict[str, Any]) -> None:
    assert digest_of(shuffled(document), {}) == digest_of(document, {})


@given(documents, keys, leaves, leaves)
def test_any_changed_value_changes_it(document: dict[str, Any], key: str, old: object, new: object) -> None:
    same_number = not isinstance(old, str | bool) and not isinstance(new, str | bool) and old == new
    same = same_number or (type(old) is type(new) and old == new)
    before, after = (digest_of({**document, key: value}, {}) for value in (old, new))
    assert (before == after) == same


@given(documents, st.binary(max_size=16), st.binary(max_size=16))
def test_it_changes_with_a_file_exactly_when_its_bytes_change(document: dict[str, Any], old: bytes, new: bytes) -> None:
    held = {**document, "mol": {"route": {"prompt_path": "route.md"}}}
    before, after = (digest_of(held, {("mol", "route", "prompt_path"): raw}) for raw in (old, new))
    assert (before == after) == (old == new)


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=6))
def test_a_path_counts_the_same_in_every_normal_form(name: str) -> None:
    forms = {
        digest_of({"mol": {"adapters": [{"source": unicodedata.normalize(form, name)}]}}, {}) for form in ("NFC", "NFD")
    }
    assert len(forms) == 1
