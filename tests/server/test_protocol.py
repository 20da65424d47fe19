"""Connections: slow, endless, pipelined, broken off. Nobody else may notice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import time

import pytest

from macaron.server.protocol import BoundedProtocol
from tests.doubles.engine_double import Reply, by_words
from tests.server.conftest import Stand, Standing, until
from tests.server.raw import chat_body, request, wire

CHAT = "/v1/chat/completions"


BRIEF = {"header_timeout": 0.3, "body_timeout": 0.3}


async def others_are_served(running: Stand, within: float = 1.0) -> None:
    """Another client's request is answered as ever."""
    clock = time.perf_counter()
    reply = await running.client.chat([{"role": "user", "content": "me too"}])
    assert reply.status == 200
    assert time.perf_counter() - clock < within


async def settled(running: Stand) -> None:
    """No request is running or waiting any more."""
    admission = running.service.admission
    await until(lambda: not admission.active and not admission.queued)


async def test_a_connection_that_says_nothing_is_closed(stand: Standing) -> None:
    async with stand(by_words({}), service=BRIEF) as running, wire(running.port) as connection:
        await others_are_served(running)
        assert (await connection.answer()).status == 408
        assert await connection.ended() == b""


async def test_headers_that_dawdle_are_timed_out_while_others_are_served(stand: Standing) -> None:
    async with stand(by_words({}), service=BRIEF) as running, wire(running.port) as connection:
        clock = time.perf_counter()
        await connection.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        for number in range(3):
            await connection.send(b"x-slow: %d\r\n" % number)
            await others_are_served(running)
        answer = await connection.answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert await connection.ended() == b""
    assert 0.25 < time.perf_counter() - clock < 2


@pytest.mark.parametrize("filler", [b"x-more: " + b"y" * 1000 + b"\r\n", b"y" * 1000], ids=["many", "one"])
async def test_headers_without_end_are_refused_by_size(stand: Standing, filler: bytes) -> None:
    async with stand(by_words({})) as running, wire(running.port) as connection:
        await connection.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-first: ")
        answer = asyncio.create_task(connection.answer())
        sent = 0
        while not answer.done() and sent < 10_000_000:
            try:
                await connection.send(filler)
            except ConnectionError:
                break
            sent += len(filler)
            await asyncio.sleep(0)
        assert sent < 5_000_000
        await asyncio.gather(answer, return_exceptions=True)
        if not answer.exception():
            assert answer.result().status == 431
        await others_are_served(running)


async def test_a_body_that_stops_is_408_and_the_connection_is_closed(stand: Standing) -> None:
    async with stand(by_words({}), service=BRIEF) as running, wire(running.port) as connection:
        data = request("POST", CHAT, body=chat_body())
        await connection.send(data[:-10])
        await others_are_served(running)
        answer = await connection.answer()
        assert (answer.status, answer.error["code"]) == (408, "request_timeout")
        assert await connection.ended() == b""
        await settled(running)


async def test_a_body_that_dawdles_is_timed_out_as_a_whole(stand: Standing) -> None:
    async with stand(by_words({}), service=BRIEF) as running, wire(running.port) as connection:
        head, _, body = request("POST", CHAT, body=chat_body("x" * 1000)).partition(b"\r\n\r\n")
        await connection.send(head + b"\r\n\r\n")
        answer = asyncio.create_task(connection.answer())
        for position in range(len(body)):
            if answer.done():
                break
            await connection.send(body[position : position + 1])
            await asyncio.sleep(0.01)
        assert (await answer).status == 408


async def test_trailers_without_end_are_cut_off(stand: Standing) -> None:
    async with stand(by_words({})) as running, wire(running.port) as connection:
        headers = {"content-type": "application/json", "transfer-encoding": "chunked"}
        await connection.send(request("POST", CHAT, headers) + b"2\r\n{}\r\n0\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 20_000_000:
                await connection.send(b"x-trailer: " + b"y" * 5000 + b"\r\n")
                sent += 5000
                await asyncio.sleep(0)
        assert sent < 10_000_000
        await settled(running)


async def test_small_chunks_are_a_body_like_any_other(stand: Standing) -> None:
    async with stand(by_words({}, answer="ok")) as running, wire(running.port) as connection:
        body = chat_body("word " * 20_000)
        headers = {"content-type": "application/json", "transfer-encoding": "chunked"}
        chunks = b"".join(b"10\r\n%b\r\n" % body[at : at + 16] for at in range(0, len(body) - len(body) % 16, 16))
        rest = body[len(body) - len(body) % 16 :]
        tail = b"%x\r\n%b\r\n" % (len(rest), rest) if rest else b""
        await connection.send(request("POST", CHAT, headers) + chunks + tail + b"0\r\n\r\n")
        assert (await connection.answer()).status == 200


async def test_one_connection_serves_one_request_after_another(stand: Standing) -> None:
    async with stand(by_words({}, answer="ok"), service=BRIEF) as running, wire(running.port) as connection:
        for _ in range(3):
            await connection.send(request("POST", CHAT, body=chat_body()))
            assert (await connection.answer()).status == 200
            await connection.send(request("GET", "/health"))
            assert (await connection.answer()).status == 200


async def test_a_kept_connection_outlives_the_header_timeout(stand: Standing) -> None:
    async with stand(by_words({}), service=BRIEF) as running, wire(running.port) as connection:
        await connection.send(request("GET", "/health"))
        assert (await connection.answer()).status == 200
        await asyncio.sleep(0.5)
        await connection.send(request("GET", "/health"))
        assert (await connection.answer()).status == 200


async def test_an_answer_longer_than_the_header_timeout_is_not_cut_off(stand: Standing) -> None:
    gate = asyncio.Event()
    script = lambda seen: Reply("L0") if seen.is_route else Reply("slow", gate=gate)  # noqa: E731
    async with stand(script, service=BRIEF) as running, wire(running.port) as connection:
        await connection.send(request("POST", CHAT, body=chat_body()))
        await running.double.arrived(2)
        await asyncio.sleep(0.5)
        gate.set()
        assert (await connection.answer()).status == 200


async def test_pipelined_requests_are_answered_in_order(stand: Standing) -> None:
    async with stand(by_words({}, answer="ok")) as running, wire(running.port) as connection:
        await connection.send(
            request("POST", CHAT, body=chat_body()) + request("GET", "/health") + request("GET", "/v1/models")
        )
        bodies = [(await connection.answer()).body for _ in range(3)]
    assert [b"chat.completion" in bodies[0], b'"ok"' in bodies[1], b"list" in bodies[2]] == [True, True, True]


async def test_a_pipelined_request_that_dawdles_does_not_spoil_the_answer_before_it(stand: Standing) -> None:
    gate = asyncio.Event()
    script = lambda seen: Reply("L0") if seen.is_route else Reply("first", gate=gate)  # noqa: E731
    async with stand(script, service=BRIEF) as running, wire(running.port) as connection:
        await connection.send(request("POST", CHAT, body=chat_body()) + b"GET /health HT")
        await running.double.arrived(2)
        await asyncio.sleep(0.5)
        gate.set()
        assert b"first" in (await connection.answer()).body
        assert (await connection.answer()).status == 408
        assert await connection.ended() == b""


async def test_more_pipelined_requests_than_anybody_sends_end_the_connection(stand: Standing) -> None:
    gate = asyncio.Event()
    script = lambda seen: Reply("L0") if seen.is_route else Reply("first", gate=gate)  # noqa: E731
    async with stand(script) as running, wire(running.port) as connection:
        await connection.send(request("POST", CHAT, body=chat_body()))
        await running.double.arrived(2)
        await connection.send(request("GET", "/health") * 1000)
        hop = await running.double.arrived(2)
        async with asyncio.timeout(5):
            await hop.ended.wait()
        gate.set()
        assert hop.outcome == "cancelled"
        await settled(running)
        await others_are_served(running)


async def test_the_rest_of_an_answered_body_is_not_taken_for_a_request(stand: Standing) -> None:
    async with stand(by_words({}, answer="ok"), service=BRIEF) as running, wire(running.port) as connection:
        data = request("POST", CHAT, {"content-type": "text/plain", "content-length": "300000"}, b"")
        await connection.send(data)
        assert (await connection.answer()).status == 400
        await connection.send(b"x" * 300_000)
        await connection.send(request("POST", CHAT, body=chat_body()))
        assert (await connection.answer()).status == 200
        await asyncio.sleep(0.5)
        await connection.send(request("GET", "/health"))
        assert (await connection.answer()).status == 200


async def test_the_rest_of_an_answered_body_may_not_take_for_ever(stand: Standing) -> None:
    async with stand(by_words({}), service=BRIEF) as running, wire(running.port) as connection:
        data = request("POST", CHAT, {"content-type": "text/plain", "content-length": "300000"}, b"")
        await connection.send(data)
        assert (await connection.answer()).status == 400
        assert await connection.ended() == b""


async def test_a_client_that_leaves_within_its_body_is_forgotten(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        async with wire(running.port) as connection:
            await connection.send(request("POST", CHAT, body=chat_body())[:-10])
        await others_are_served(running)
        await settled(running)
        left = b'requests_total{endpoint="chat",status="499"} 1.0'
        await until(lambda: left in running.service.metrics.render())


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_the_engines_work(stand: Standing, stream: bool) -> None:
    script = lambda seen: Reply("L0") if seen.is_route else Reply("never", fault="hang", fault_after=0)  # noqa: E731
    async with stand(script) as running:
        async with wire(running.port) as connection:
            await connection.send(request("POST", CHAT, body=chat_body(stream=stream)))
            hop = await running.double.arrived(2)
        async with asyncio.timeout(5):
            await hop.ended.wait()
        assert hop.outcome == "cancelled"
        await settled(running)


async def test_a_client_that_does_not_read_its_answer_is_cut_off(
    stand: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedProtocol, "write_timeout", 0.3)
    text = "word " * 20_000
    async with stand(lambda seen: "L0" if seen.is_route else text) as running:
        stuck = socket.socket()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.setblocking(False)
        await asyncio.get_running_loop().sock_connect(stuck, ("127.0.0.1", running.port))
        try:
            await asyncio.get_running_loop().sock_sendall(
                stuck, request("POST", CHAT, body=chat_body(stream=True, n=16))
            )
            await running.double.arrived(2)
            await others_are_served(running, within=15)
            await settled(running)
        finally:
            stuck.close()


async def test_a_client_that_reads_slowly_misses_nothing(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    full = asyncio.Event()
    pause = BoundedProtocol.pause_writing

    def noticed(self: BoundedProtocol) -> None:
        pause(self)
        full.set()

    monkeypatch.setattr(BoundedProtocol, "pause_writing", noticed)
    text = "".join(f"{number:0400d} " for number in range(20_000))
    async with stand(lambda seen: "L0" if seen.is_route else text) as running:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(slow, ("127.0.0.1", running.port))
        reader, writer = await asyncio.open_connection(sock=slow, limit=4096)
        writer.write(request("POST", CHAT, body=chat_body(stream=True)))
        data = bytearray()
        with contextlib.closing(writer):
            await asyncio.wait_for(full.wait(), 20)
            while not data.endswith(b"\r\n0\r\n\r\n"):
                data += await reader.read(65_536)
    events = re.findall(rb"^data: (\{.*\})$", data, re.MULTILINE)
    assert "".join(json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events) == text


@pytest.mark.parametrize("ending", [{"connection": "close"}, {}])
async def test_a_whole_response_is_the_same_on_a_connection_that_stays(
    stand: Standing, ending: dict[str, str | None]
) -> None:
    async with stand(by_words({})) as running, wire(running.port) as connection:
        asked = {"x-request-id": "mine", "x-macaron-trace": "1"}
        await connection.send(request("POST", CHAT, {**asked, **ending}, body=chat_body()))
        answer = await connection.answer()
        assert answer.status == 200
        assert json.loads(answer.body)["choices"][0]["finish_reason"] == "stop"
        assert sorted(answer.headers.keys() - {"connection", "server"}) == [
            "content-length",
            "content-type",
            "date",
            "x-macaron-adapter",
            "x-macaron-hops",
            "x-macaron-session",
            "x-request-id",
        ]
        assert answer.headers.get("connection") == ending.get("connection")


async def test_garbage_is_400(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
            async with wire(running.port) as connection:
                await connection.send(data)
                assert (await connection.answer()).status == 400
        await others_are_served(running)


async def test_a_hundred_dawdling_connections_disturb_nobody(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        open_ones = [await asyncio.open_connection("127.0.0.1", running.port) for _ in range(100)]
        for _, writer in open_ones:
            writer.write(request("POST", CHAT, body=chat_body())[:-5])
        await others_are_served(running)
        for _, writer in open_ones:
            writer.close()
        await settled(running)
