"""An engine double for the benchmarks: it runs no model, it answers from bytes encoded beforehand, at once or in time.

`python -m benchmarks.instant_engine --port 9000` speaks as much of vLLM's HTTP interface as a Mixture-of-LoRA service
needs. The last user message steers it: `@L2` is the label a route hop returns, `@n=256` the tokens of the answer and
`@every=5` the milliseconds between them. With `--answer-seconds` and its siblings a hop takes that long, and an answer
is spread over it evenly. With `--max-concurrent` further hops wait in arrival order, as they do behind `max_num_seqs`.
`GET /stats` tells what was served, cancelled and wasted; `POST /reset` starts the count again.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import re
import signal
from collections import deque
from typing import cast

import httptools
import msgspec
import uvloop

from benchmarks.replies import EVENTS_HEAD, Reply, answer_reply, encode_json, models_reply, route_reply

ROUTE_KEYS = (b'"structured_outputs"', b'"regex"', b'"grammar"', b'"guided_choice"', b'"ebnf"')
SUMMARY_MARK = b"Summarize what you did"
STREAM = re.compile(rb'"stream"\s*:\s*true')
USAGE = re.compile(rb'"include_usage"\s*:\s*true')
CONTROLS = re.compile(rb"@(L\d|n=\d{1,5}|every=\d{1,4})")
EDGE_BYTES = 4096


class Options(msgspec.Struct, frozen=True):
    """How the double behaves. Times are seconds; `every` is the default time between two tokens of an answer."""

    tokens: int = 32
    summary_tokens: int = 48
    every: float = 0.0
    label: str = "L2"
    route_seconds: float = 0.0
    answer_seconds: float = 0.0
    summary_seconds: float = 0.0
    max_concurrent: int = 0


class Stats(msgspec.Struct):
    """What was served since the last reset; `busy` is hop-seconds of engine time by kind."""

    hops: dict[str, int] = {}
    cancelled: dict[str, int] = {}
    wasted_tokens: dict[str, int] = {}
    busy: dict[str, float] = {}
    active: int = 0
    queued: int = 0
    peak: int = 0


class Hop(msgspec.Struct, eq=False):
    """One request in the engine. `seconds` is how long it holds a place."""

    kind: str
    tokens: int
    stream: bool
    seconds: float
    reply: Reply
    connection: Connection
    began: float = -1.0
    sent: int = 0
    timer: asyncio.TimerHandle | None = None


class Engine:
    """Gives hops their places in arrival order and sends their replies on time."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        self.options = options
        self.stats = Stats()
        self._loop = loop
        self._waiting: deque[Hop] = deque()

    def submit(self, hop: Hop) -> None:
        """Begin the hop, or let it wait for a place."""
        if self.options.max_concurrent and self.stats.active >= self.options.max_concurrent:
            self._waiting.append(hop)
            self.stats.queued = len(self._waiting)
            return
        self._begin(hop)

    def cancel(self, hop: Hop) -> None:
        """The client left: free the place and count what was generated for nobody."""
        if hop.began < 0:
            self._waiting.remove(hop)
            self.stats.queued = len(self._waiting)
        else:
            share = min(1.0, (self._loop.time() - hop.began) / hop.seconds) if hop.seconds else 1.0
            _add(self.stats.wasted_tokens, hop.kind, int(hop.tokens * share))
            self._leave(hop)
        _add(self.stats.cancelled, hop.kind, 1)

    def _begin(self, hop: Hop) -> None:
        hop.began = self._loop.time()
        self.stats.active += 1
        self.stats.peak = max(self.stats.peak, self.stats.active)
        if not hop.seconds:
            hop.connection.send(hop.reply.whole)
            self._end(hop)
        elif hop.stream:
            self._send_token(hop)
        else:
            hop.timer = self._loop.call_at(hop.began + hop.seconds, self._send_whole, hop)

    def _send_whole(self, hop: Hop) -> None:
        hop.connection.send(hop.reply.whole)
        self._end(hop)

    def _send_token(self, hop: Hop) -> None:
        if hop.sent:
            head = EVENTS_HEAD if hop.sent == 1 else b""
            hop.connection.send(head + hop.reply.frames[hop.sent - 1])
        if hop.sent == len(hop.reply.frames):
            self._end(hop)
            return
        hop.sent += 1
        due = hop.began + hop.seconds * hop.sent / len(hop.reply.frames)
        hop.timer = self._loop.call_at(due, self._send_token, hop)

    def _end(self, hop: Hop) -> None:
        hop.connection.hop = None
        _add(self.stats.hops, hop.kind, 1)
        self._leave(hop)

    def _leave(self, hop: Hop) -> None:
        if hop.timer is not None:
            hop.timer.cancel()
        self.stats.busy[hop.kind] = self.stats.busy.get(hop.kind, 0.0) + self._loop.time() - hop.began
        self.stats.active -= 1
        if self._waiting:
            following = self._waiting.popleft()
            self.stats.queued = len(self._waiting)
            self._begin(following)


class Connection(asyncio.Protocol):
    """One kept-alive connection. A client sends its next request after the reply to the last one."""

    def __init__(self, engine: Engine) -> None:
        self.hop: Hop | None = None
        self._engine = engine
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.hop is not None:
            self._engine.cancel(self.hop)
            self.hop = None

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def send(self, data: bytes) -> None:
        """Write to the client."""
        assert self._transport is not None
        self._transport.write(data)

    def on_url(self, url: bytes) -> None:
        self._url = url
        self._body = []

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        match self._url:
            case b"/v1/chat/completions":
                self.hop = read_hop(b"".join(self._body), self._engine.options, self)
                self._engine.submit(self.hop)
            case b"/health":
                self.send(encode_json({}))
            case b"/version":
                self.send(encode_json({"version": "0.24.0"}))
            case b"/v1/models":
                self.send(models_reply())
            case b"/stats":
                self.send(encode_json(self._engine.stats))
            case b"/reset":
                kept = self._engine.stats
                self._engine.stats = Stats(active=kept.active, queued=kept.queued, peak=kept.active)
                self.send(encode_json({}))
            case _:
                self.send(encode_json({"error": {"message": "the double does not serve this path", "code": 404}}, 404))


class Controls(msgspec.Struct):
    """What the last user message asks for."""

    label: str
    tokens: int
    every: float


def read_hop(body: bytes, options: Options, connection: Connection) -> Hop:
    """Classify a request by its edges: what lies between them is history, and searching it would cost the benchmark."""
    edges = body if len(body) <= 4 * EDGE_BYTES else body[:EDGE_BYTES] + body[-EDGE_BYTES:]
    if any(key in edges for key in ROUTE_KEYS):
        controls = read_controls(edges, options)
        digits_only = b'"choice":["0"' in edges
        return Hop("route", 1, False, options.route_seconds, route_reply(controls.label[digits_only:]), connection)
    stream = STREAM.search(edges) is not None
    usage = USAGE.search(edges) is not None
    if SUMMARY_MARK in edges:
        reply = answer_reply(options.summary_tokens, stream, usage)
        return Hop("summary", options.summary_tokens, stream, options.summary_seconds, reply, connection)
    controls = read_controls(edges, options)
    seconds = controls.every * controls.tokens or options.answer_seconds
    return Hop("answer", controls.tokens, stream, seconds, answer_reply(controls.tokens, stream, usage), connection)


def read_controls(edges: bytes, options: Options) -> Controls:
    """The last `@…` of each kind, with the options where there is none."""
    controls = Controls(options.label, options.tokens, options.every)
    for found in CONTROLS.findall(edges):
        if found.startswith(b"L"):
            controls.label = found.decode()
        elif found.startswith(b"n="):
            controls.tokens = max(1, int(found[2:]))
        else:
            controls.every = int(found[6:]) / 1000
    return controls


def _add(counts: dict[str, int], key: str, number: int) -> None:
    counts[key] = counts.get(key, 0) + number


async def serve(host: str, port: int, options: Options) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    engine = Engine(options, loop)
    server = await loop.create_server(functools.partial(Connection, engine), host, port, backlog=1024)
    async with server:
        print(f"instant engine (a double, no model) on http://{host}:{server.sockets[0].getsockname()[1]}", flush=True)
        await stop.wait()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="An engine double: answers from pre-encoded bytes, runs no model.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000)
    for field in msgspec.structs.fields(Options):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    host, port = given.pop("host"), given.pop("port")
    uvloop.run(serve(host, port, Options(**given)))


if __name__ == "__main__":
    main()
