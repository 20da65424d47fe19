"""Keys: the file they come from, and what a caller may do with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from macaron.errors import ConfigError, Unauthorized
from macaron.server.keys import SCOPES, Caller, Keys, create_key_file, read_keys
from tests.doubles.engine_double import by_words
from tests.server.conftest import Standing
from tests.server.raw import ask, chat_body, request

WriteKeys = Callable[[str], Path]
ALICE, BOB, ADMIN = "alice-key-0123456789", "bob-key-0123456789", "admin-key-0123456789"
FILE = f"""
# people
alice:{ALICE}
bob:{BOB}:chat,trace,pin

ops:{ADMIN}:admin
"""
HI = [{"role": "user", "content": "hi"}]


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def keys(key_file: WriteKeys) -> Keys:
    """The keys of `FILE`."""
    return read_keys(key_file(FILE))


def who(keys: Keys, key: str) -> Caller:
    return keys.authenticate({b"authorization": b"Bearer " + key.encode()})


# --- the file


def test_a_line_names_a_tenant_and_its_scopes(key_file: WriteKeys) -> None:
    keys = read_keys(key_file(FILE))
    assert who(keys, ALICE) == Caller("alice", frozenset({"chat"}))
    assert who(keys, BOB) == Caller("bob", frozenset({"chat", "trace", "pin"}))
    assert who(keys, ADMIN) == Caller("ops", frozenset({"admin"}))
    assert not keys.open


def test_a_file_with_nothing_but_a_key_is_its_owners(key_file: WriteKeys) -> None:
    assert who(read_keys(key_file(f"{ALICE}\n")), ALICE) == Caller("owner", SCOPES)


def test_two_keys_of_one_name_are_one_tenant(key_file: WriteKeys) -> None:
    keys = read_keys(key_file(f"a:{ALICE}\na:{BOB}:trace\n"))
    assert who(keys, ALICE).tenant == who(keys, BOB).tenant == "a"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_can_read_is_refused(key_file: Callable[[str, int], Path], mode: int) -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        read_keys(key_file(FILE, mode))


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        (f"alice {ALICE}", ALICE),
        (f"ali ce:{ALICE}", ALICE),
        (f":{ALICE}", ALICE),
        ("alice:short-secret", "short-secret"),
        (f"alice:{ALICE} {BOB}", ALICE),
        (f"alice:{ALICE}ä", ALICE),
        (f"alice:{'x' * 513}", "x" * 100),
        (f"alice:{ALICE}:root", ALICE),
        (f"alice:{ALICE}:chat,", ALICE),
        ("alice:first-half-012345:second-half-67890", "second-half-67890"),
        (f"\ufeffalice:{ALICE}", ALICE),
    ],
)
def test_a_bad_line_is_named_by_its_number_and_no_key_is_shown(key_file: WriteKeys, line: str, secret: str) -> None:
    text = f"# first\nbob:{BOB}\n{line}\n"
    with pytest.raises(ConfigError) as caught:
        read_keys(key_file(text))
    assert "line 3" in caught.value.message
    assert secret not in caught.value.message
    assert BOB not in caught.value.message


def test_a_key_of_two_tenants_is_refused(key_file: WriteKeys) -> None:
    with pytest.raises(ConfigError, match="line 2") as caught:
        read_keys(key_file(f"a:{ALICE}\nb:{ALICE}\n"))
    assert ALICE not in caught.value.message


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_a_file_without_a_key_is_refused(key_file: WriteKeys, text: str) -> None:
    with pytest.raises(ConfigError, match="no key"):
        read_keys(key_file(text))


def test_a_bare_key_that_is_too_short_is_refused_without_showing_it(key_file: WriteKeys) -> None:
    with pytest.raises(ConfigError) as caught:
        read_keys(key_file("hunter2"))
    assert "hunter2" not in caught.value.message


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_keys(tmp_path / "nowhere")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe secret")
    with pytest.raises(ConfigError) as caught:
        read_keys(binary)
    assert "secret" not in caught.value.message


def test_a_key_file_that_was_made_is_read_back_and_is_its_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    create_key_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert who(read_keys(path), path.read_text().strip()).tenant == "owner"
    with pytest.raises(FileExistsError):
        create_key_file(path)


def test_only_hashes_of_keys_are_kept(key_file: WriteKeys) -> None:
    assert ALICE not in repr(vars(read_keys(key_file(FILE))))


# --- the header


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"authorization": b""},
        {b"authorization": b"Bearer"},
        {b"authorization": b"Bearer "},
        {b"authorization": b"Basic " + ALICE.encode()},
        {b"authorization": ALICE.encode()},
        {b"authorization": b"Bearer wrong"},
        {b"authorization": b"Bearer " + ALICE.encode() + b"x"},
        {b"authorization": b"Bearer " + ALICE.upper().encode()},
        {b"authorization": "Bearer schlüssel".encode()},
        {b"authorization": b"Bearer \xff\xfe"},
        {b"authorization": b"Bearer " + b"x" * 60_000},
        {b"x-api-key": b"wrong"},
    ],
)
def test_no_key_or_a_wrong_one_is_401(key_file: WriteKeys, headers: dict[bytes, bytes]) -> None:
    with pytest.raises(Unauthorized):
        read_keys(key_file(FILE)).authenticate(headers)


def test_a_key_may_come_in_either_header(key_file: WriteKeys) -> None:
    keys = read_keys(key_file(FILE))
    assert keys.authenticate({b"x-api-key": ALICE.encode()}).tenant == "alice"
    assert keys.authenticate({b"authorization": b"bearer  " + ALICE.encode()}).tenant == "alice"


def test_open_mode_is_the_local_tenant_and_never_an_administrator() -> None:
    for headers in ({}, {b"authorization": b"Bearer anything"}, {b"authorization": b"\xff"}):
        assert Keys(None).authenticate(headers) == Caller("local", frozenset({"chat", "trace", "pin"}))


# --- over HTTP


async def test_a_wrong_key_is_401_on_every_path_that_needs_one(stand: Standing, keys: Keys) -> None:
    async with stand(by_words({}), keys=keys) as running:
        for headers in ({}, bearer("wrong-key-0123456789")):
            replies = [
                await running.client.chat(HI, headers=headers),
                *[
                    await running.client.get(path, headers)
                    for path in ("/v1/models", "/v1/models/test-model", "/v1/macaron/sessions/x", "/metrics")
                ],
            ]
            assert {reply.status for reply in replies} == {401}
            assert {reply.body["error"]["type"] for reply in replies} == {"authentication_error"}
            assert {reply.headers["www-authenticate"] for reply in replies} == {"Bearer"}
        assert running.double.requests == []


async def test_a_non_ascii_key_is_a_clear_401(stand: Standing, keys: Keys) -> None:
    async with stand(by_words({}), keys=keys) as running:
        data = request("POST", "/v1/chat/completions", {"authorization": "Bearer schlüssel"}, chat_body())
        answer = await ask(running.port, data)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")


async def test_health_and_readiness_need_no_key(stand: Standing, keys: Keys) -> None:
    async with stand(by_words({}), keys=keys) as running:
        assert (await running.client.get("/health")).status == 200
        assert (await running.client.get("/ready")).status == 200


@pytest.mark.parametrize(
    ("header", "param"), [({"x-macaron-trace": "1"}, "trace"), ({"x-macaron-adapter": "L2"}, "pin")]
)
async def test_a_key_without_the_scope_is_403(stand: Standing, keys: Keys, header: dict[str, str], param: str) -> None:
    async with stand(by_words({}), keys=keys) as running:
        refused = await running.client.chat(HI, headers={**bearer(ALICE), **header})
        allowed = await running.client.chat(HI, headers={**bearer(BOB), **header})
    assert (refused.status, refused.body["error"]["code"]) == (403, "missing_scope")
    assert param in refused.body["error"]["message"]
    assert allowed.status == 200


async def test_an_administrators_key_does_not_chat_and_a_chat_key_does_not_administrate(
    stand: Standing, keys: Keys
) -> None:
    async with stand(by_words({}), keys=keys) as running:
        assert (await running.client.chat(HI, headers=bearer(ADMIN))).status == 403
        assert (await running.client.get("/metrics", bearer(BOB))).status == 403
        assert (await running.client.get("/v1/macaron/sessions/x", bearer(ALICE))).status == 403
        async with running.client.session.get(running.url + "/metrics", headers=bearer(ADMIN)) as response:
            assert response.status == 200


async def test_a_pinned_specialist_answers_and_an_unknown_one_is_named(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        pinned = await running.client.chat(HI, headers={"x-macaron-adapter": "L3", "x-macaron-trace": "1"})
        unknown = await running.client.chat(HI, headers={"x-macaron-adapter": "L9"})
    assert (pinned.adapter, pinned.headers["x-macaron-hops"]) == ("L3", "answer")
    assert (unknown.status, unknown.body["error"]["param"]) == (400, "x-macaron-adapter")
    assert "L0, L1, L2, L3" in unknown.body["error"]["message"]


async def test_no_response_holds_a_key(stand: Standing, keys: Keys) -> None:
    async with stand(by_words({}), keys=keys) as running:
        replies = [
            await running.client.chat(HI, headers=bearer(BOB) | {"x-macaron-trace": "1"}),
            await running.client.chat([], headers=bearer(BOB)),
            await running.client.get("/ready", bearer(BOB)),
            await running.client.chat(HI, headers=bearer(BOB + "x")),
        ]
    assert BOB not in json.dumps([[reply.headers, reply.body] for reply in replies])
