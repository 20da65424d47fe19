"""Web pages of other origins: refused, unless the contract names them."""

from __future__ import annotations

import pytest

from tests.doubles.engine_double import by_words
from tests.server.conftest import Standing
from tests.server.raw import ask, chat_body, request

CHAT = "/v1/chat/completions"
ORIGIN = "https://app.example.com"
NAMED = {"cors_origins": (ORIGIN,)}
PREFLIGHT = {
    "origin": ORIGIN,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-session-id",
}


@pytest.mark.parametrize("loopback", [True, False])
async def test_by_default_no_page_of_another_origin_is_told_anything(stand: Standing, loopback: bool) -> None:
    async with stand(by_words({}), loopback=loopback) as running:
        answers = [
            await ask(running.port, request("OPTIONS", CHAT, PREFLIGHT)),
            await ask(running.port, request("POST", CHAT, {"origin": ORIGIN}, chat_body())),
        ]
    assert not [name for answer in answers for name in answer.headers if name.startswith("access-control")]
    assert answers[1].status == (403 if loopback else 200)


@pytest.mark.parametrize("loopback", [True, False])
async def test_a_page_of_a_named_origin_may_call(stand: Standing, loopback: bool) -> None:
    async with stand(by_words({}), service=NAMED, loopback=loopback) as running:
        allowed = await ask(running.port, request("OPTIONS", CHAT, PREFLIGHT))
        answer = await ask(running.port, request("POST", CHAT, {"origin": ORIGIN}, chat_body()))
        streamed = await ask(running.port, request("POST", CHAT, {"origin": ORIGIN}, chat_body(stream=True)))
    assert allowed.status == 200
    assert allowed.headers["access-control-allow-origin"] == ORIGIN
    assert "x-session-id" in allowed.headers["access-control-allow-headers"]
    for reply in (answer, streamed):
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert "x-request-id" in reply.headers["access-control-expose-headers"]


async def test_other_origins_stay_refused(stand: Standing) -> None:
    async with stand(by_words({}), service=NAMED) as running:
        other = {"origin": "https://app.example.com.evil.com"}
        refused = await ask(running.port, request("OPTIONS", CHAT, {**PREFLIGHT, **other}))
        answer = await ask(running.port, request("POST", CHAT, other, chat_body()))
    assert refused.status == 400
    assert answer.status == 403
    for reply in (refused, answer):
        assert "access-control-allow-origin" not in reply.headers
