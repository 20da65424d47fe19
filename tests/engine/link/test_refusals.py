"""What a link refuses to send, and where it refuses to connect."""

from __future__ import annotations

import ssl

import pytest

from macaron.engine.link import create_link
from macaron.engine.link.base import Limits
from macaron.engine.link.origin import parse_origin
from macaron.errors import ConfigError, EngineError
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import Servers, always_ok

PATHS = ["", "x", "http://h/x", "/a b", "/a\r\nx: y", "/a\n", "/a\x00", "/\x7f", "/é", "/a#b"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_that_is_not_one_is_refused(servers: Servers, connect: Connect, path: str) -> None:
    server = await servers.start(always_ok)
    link = connect(server.origin)
    with pytest.raises(EngineError, match="path"):
        await link.request("GET", path)
    with pytest.raises(EngineError, match="path"):
        link.stream("GET", path)
    assert server.peers == []


@pytest.mark.parametrize("method", ["", "get", "GET /x HTTP/1.1\r\nHost:", "G\nET", "É"])
async def test_a_method_that_is_not_one_is_refused(connect: Connect, method: str) -> None:
    with pytest.raises(EngineError, match="method"):
        await connect("http://127.0.0.1:9").request(method, "/x")


HEADERS = [
    {"x": "a\r\nevil: 1"}, {"x": "a\nevil: 1"}, {"x": "a\rb"}, {"x": "a\x00"}, {"x": "€"}, {"x\r\nevil": "1"},
    {"x:": "1"}, {"x y": "1"}, {"": "1"}, {"é": "1"}, {"Host": "evil"}, {"content-length": "3"},
    {"Transfer-Encoding": "chunked"}, {"connection": "upgrade"},
]  # fmt: skip


@pytest.mark.parametrize("headers", HEADERS, ids=repr)
async def test_a_header_that_could_smuggle_is_refused(connect: Connect, headers: dict[str, str]) -> None:
    with pytest.raises(EngineError, match="header"):
        await connect("http://127.0.0.1:9").request("GET", "/x", None, headers)
    with pytest.raises(ConfigError, match="header"):
        connect("http://127.0.0.1:9", headers=headers)


async def test_a_refused_header_does_not_show_its_value(connect: Connect) -> None:
    with pytest.raises(EngineError) as caught:
        await connect("http://127.0.0.1:9").request("GET", "/x", None, {"authorization": "Bearer s3cret\n"})
    assert "s3cret" not in str(caught.value)


ORIGINS = [
    "", "127.0.0.1:8000", "ftp://h", "http://", "http://h/v1", "http://h?x", "http://h#x", "http://u:p@h", "http://h:0",
    "http://h:99999", "http://h:x", "http://h\r\n.evil", "http://h ", "http://é", "http://[::1",
]  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
def test_what_is_not_an_origin_is_refused(origin: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create_link("native", origin)
    assert caught.value.param == "origin"


def test_credentials_in_an_origin_are_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        create_link("native", "http://user:s3cret@h")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "host", "port", "authority"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", 8000, "127.0.0.1:8000"),
        ("http://[::1]:8000/", "::1", 8000, "[::1]:8000"),
        ("https://Engine.example", "engine.example", 443, "engine.example"),
        ("http://localhost:80", "localhost", 80, "localhost"),
    ],
)
def test_an_origin_is_read(text: str, host: str, port: int, authority: str) -> None:
    origin = parse_origin(text)
    assert (origin.host, origin.port, origin.authority) == (host, port, authority)


def test_tls_for_a_plain_origin_is_refused() -> None:
    with pytest.raises(ConfigError, match="not https"):
        create_link("native", "http://127.0.0.1:9", tls=ssl.create_default_context())


def test_a_link_without_connections_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        create_link("native", "http://127.0.0.1:9", limits=Limits(connections=0))
