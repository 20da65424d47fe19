"""Loopback: no web page of another origin gets through."""

from __future__ import annotations

import pytest

from macaron.errors import BadRequest, Forbidden
from macaron.server.guard import check_origin, is_loopback
from tests.doubles.engine_double import by_words
from tests.server.conftest import Standing
from tests.server.raw import ask, chat_body, request

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8200", "localhost", "localhost:8200", "LocalHost:1", "127.1.2.3", "[::1]", "[::1]:8200"],
)
def test_a_host_that_is_this_machine_passes(host: str) -> None:
    check_origin("GET", {b"host": host.encode()}, loopback=True)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.com",
        "evil.com:8200",
        "127.0.0.1.evil.com",
        "127.0.0.1.evil.com:8200",
        "localhost.evil.com",
        "localhost.",
        "localtest.me",
        "evil.com@127.0.0.1",
        "127.0.0.1@evil.com",
        "127.0.0.1:80@evil.com",
        "127.0.0.1/evil.com",
        "127.0.0.1#evil.com",
        "127.0.0.1\\evil.com",
        "127.0.0.1 evil.com",
        "127.0.0.1,evil.com",
        "127.0.0.1:evil",
        "0.0.0.0",
        "10.0.0.1",
        "192.168.0.1:8200",
        "[::2]",
        "[::]",
        "[::1",
        "::1",
        "[::ffff:10.0.0.1]",
        "[fe80::1%25eth0]",
        "\xff",
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    with pytest.raises(Forbidden) as caught:
        check_origin("GET", {b"host": host.encode("latin-1")}, loopback=True)
    assert caught.value.code == "foreign_host"


def test_a_missing_host_is_refused() -> None:
    with pytest.raises(Forbidden):
        check_origin("GET", {}, loopback=True)


@pytest.mark.parametrize("origin", ["http://127.0.0.1:3000", "http://localhost", "https://[::1]:8200"])
def test_a_page_of_this_machine_passes(origin: str) -> None:
    check_origin("GET", {b"host": b"127.0.0.1", b"origin": origin.encode()}, loopback=True)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.com",
        "https://127.0.0.1.evil.com",
        "http://evil.com@127.0.0.1",
        "http://127.0.0.1@evil.com",
        "http://localhost.evil.com:80",
        "http://[",
        "http://[::1",
        "file://",
        "chrome-extension://abcdef",
        "127.0.0.1",
        "http://127.0.0.1/..evil.com",
    ],
)
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    with pytest.raises(Forbidden) as caught:
        check_origin("GET", {b"host": b"127.0.0.1", b"origin": origin.encode()}, loopback=True)
    assert caught.value.code == "foreign_origin"


def test_away_from_loopback_any_host_is_welcome() -> None:
    check_origin("GET", {b"host": b"models.example.com", b"origin": b"https://example.com"}, loopback=False)


@pytest.mark.parametrize("loopback", [True, False])
@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "jsonp"],
)
def test_a_post_of_another_content_type_is_refused(kind: str, loopback: bool) -> None:
    with pytest.raises(BadRequest) as caught:
        check_origin("POST", {b"host": b"127.0.0.1", b"content-type": kind.encode()}, loopback=loopback)
    assert caught.value.param == "content-type"


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json ;x=y"]
)
def test_json_is_said_in_several_ways(kind: str) -> None:
    check_origin("POST", {b"host": b"127.0.0.1", b"content-type": kind.encode()}, loopback=True)


def test_names_of_this_machine() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "", "evil.com", "::", "10.0.0.1")))


@pytest.mark.parametrize("headers", [{"host": "evil.com"}, {"origin": "http://evil.com"}, {"host": None}])
@pytest.mark.parametrize(("method", "path"), [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/nowhere")])
async def test_a_foreign_request_is_403_on_every_path(
    stand: Standing, headers: dict[str, str | None], method: str, path: str
) -> None:
    async with stand(by_words({})) as running:
        body = chat_body() if method == "POST" else None
        data = request(method, path, headers, body)
        if headers.get("host", "") is None:
            # HTTP/1.1 asks for a Host, and the parser may refuse what has none before we do.
            data = data.replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        answer = await ask(running.port, data)
    assert (answer.status, answer.error["type"]) == (403, "permission_error")
    assert answer.headers["x-request-id"]
    assert running.double.requests == []


async def test_a_preflight_is_not_answered(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        headers = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
        answer = await ask(running.port, request("OPTIONS", CHAT, headers))
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]
