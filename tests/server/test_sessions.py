"""Sessions over HTTP: how clients name them, and what their trace shows."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.doubles.engine_double import by_words
from tests.server.conftest import Standing
from tests.server.raw import ask, chat_body, request

CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]
TRACE = {"x-macaron-trace": "1"}
NAMES = ("x-session-id", "session-id", "x-conversation-id")


async def test_a_trace_shows_the_hops_of_each_step_with_times_and_tokens(stand: Standing) -> None:
    async with stand(by_words({}, answer="one two")) as running:
        reply = await running.client.chat(HI, headers=TRACE)
        trace = await running.client.get(f"/v1/macaron/sessions/{reply.headers['x-macaron-session']}")
    (step,) = trace.body["steps"]
    assert step["id"] == reply.body["id"]
    assert (step["label"], step["status"], step["finish"]) == ("L0", "completed", "stop")
    assert [hop["kind"] for hop in step["hops"]] == ["route", "answer"]
    assert all(hop["seconds"] > 0 for hop in step["hops"])
    assert step["hops"][1]["usage"]["completion"] == 2


async def test_a_trace_holds_no_words_of_the_conversation(stand: Standing) -> None:
    async with stand(by_words({}, answer="private answer")) as running:
        reply = await running.client.chat([{"role": "user", "content": "private question"}], headers=TRACE)
        url = f"{running.url}/v1/macaron/sessions/{reply.headers['x-macaron-session']}"
        async with running.client.session.get(url) as response:
            assert "private" not in await response.text()


@pytest.mark.parametrize("header", NAMES)
@pytest.mark.parametrize("name", ["plain", "with/slash", "a b", "%2F", "日本", "x" * 256])
async def test_a_named_session_is_traced_under_its_name(stand: Standing, header: str, name: str) -> None:
    async with stand(by_words({})) as running:
        data = request("POST", CHAT, {header: name.encode().decode("latin-1"), **TRACE}, chat_body())
        answer = await ask(running.port, data)
        trace = await ask(running.port, request("GET", f"/v1/macaron/sessions/{quote(name, safe='')}"))
    assert answer.status == 200
    assert trace.status == 200
    assert answer.headers["x-macaron-session"].encode() in trace.body


async def test_a_session_name_that_is_too_long_is_refused(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        for header in NAMES:
            reply = await running.client.chat(HI, headers={header: "x" * 257})
            assert (reply.status, reply.body["error"]["param"]) == (400, header)


@pytest.mark.parametrize("name", ["nobody", "%00", "%ff", "%ed%a0%80", "a" * 5000, "..", "'; drop table steps; --"])
async def test_an_unknown_session_is_404(stand: Standing, name: str) -> None:
    async with stand(by_words({})) as running:
        answer = await ask(running.port, request("GET", f"/v1/macaron/sessions/{name.replace(' ', '%20')}?user=%ff%00"))
    assert (answer.status, answer.error["code"]) == (404, "session_not_found")


async def test_a_session_header_without_a_value_names_nothing(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        ids = set()
        for text in ("a", "b"):
            body = chat_body(text)
            answer = await ask(running.port, request("POST", CHAT, {"x-session-id": "", **TRACE}, body))
            ids.add(answer.headers["x-macaron-session"])
    assert len(ids) == 2


async def test_without_the_header_no_trace_is_shown_streamed_or_not(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        for stream in (False, True):
            for headers in ({}, {"x-macaron-trace": "0"}):
                async with running.client.stream(HI, headers=headers, stream=stream) as response:
                    text = await response.text()
                    assert not [name for name in response.headers if name.lower().startswith("x-macaron")]
                assert "macaron" not in text
                assert '"L0"' not in text


async def test_a_streamed_trace_is_in_the_headers_and_in_every_chunk(stand: Standing) -> None:
    async with stand(by_words({})) as running, running.client.stream(HI, headers=TRACE) as response:
        text = await response.text()
        assert response.headers["x-macaron-adapter"] == "L0"
        assert response.headers["x-macaron-hops"] == "route,answer"
    chunks = [line for line in text.split("\n\n") if line.startswith("data: {")]
    assert all('"macaron_adapter":"L0"' in chunk for chunk in chunks)
