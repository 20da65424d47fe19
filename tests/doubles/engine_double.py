"""A double for a GPU engine: a scripted Chat Completions server on aiohttp, in the test's own event loop.

It stands for vLLM, SGLang or a hosted server, which cannot run here; it generates nothing and judges nothing. It
records every request and answers what the test's script says:

    async with EngineDouble(lambda seen: "L1" if seen.is_route else "hello there") as double:
        ...  # point an engine at double.origin
    assert double.requests[0].body["model"] == "L0"

A script returns a `Reply`, or a string for one that is only text. It has `n`, usage, logprobs, tool calls, `/health`,
`/v1/models` (with `parent`), `/tokenize` (a token is a word), and every fault a test may want.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from aiohttp import web

Fault = Literal["", "corrupt", "die", "hang", "error", "no_finish", "no_done"]


@dataclass(frozen=True)
class Call:
    """A tool call of an answer; `arguments` is the text as the model would write it."""

    name: str
    arguments: str = "{}"
    id: str = "call_double"


@dataclass(frozen=True)
class Reply:
    """What the double answers.

    Attributes:
        text: sent word by word where the request is streamed.
        status: other than 200 answers with `error` as the body's error, or with `raw` where that is given.
        gate: waited for before piece `gate_after` of the answer: how a test holds an answer up without sleeping.
        delay: seconds before the first byte.
        fault: a chunk that is no JSON, a connection that breaks, silence, an error event, an end without
            `finish_reason`, or without `[DONE]`.
        fault_after: the piece before which the fault takes place: 0 is the role, then come the words and the finish;
            a larger number is after it.
        linger: waited for between the `[DONE]` of a stream and the end of its body.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    finish: str = ""
    status: int = 200
    error: Mapping[str, Any] | None = None
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    gate: asyncio.Event | None = None
    gate_after: int = 0
    fault: Fault = ""
    fault_after: int = 0
    linger: asyncio.Event | None = None


@dataclass
class Seen:
    """A request as it arrived, and what became of it: `outcome` is set when `ended` is.

    Header names are lower case; `port` is the client's, which tells connections apart. `moves` says whether its adapter
    changes what the base says.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    port: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: Literal["", "sent", "cancelled"] = ""
    moves: bool = False

    @property
    def adapter(self) -> str:
        """The adapter, or the base, as either engine is told."""
        return str(self.body.get("lora_path") or self.body.get("model"))

    @property
    def is_route(self) -> bool:
        """Whether the answer is constrained to a set of labels, as a route hop's is."""
        return any(key in self.body for key in ("structured_outputs", "regex", "ebnf", "grammar", "response_format"))

    @property
    def prompt(self) -> str:
        """All text of the messages, one message a line."""
        return "\n".join(_text(message.get("content")) for message in self.body.get("messages", []))


Script = Callable[[Seen], Reply | str]


def by_words(labels: Mapping[str, str], *, default: str = "L0", answer: str = "done") -> Script:
    """A script: a route hop gets the label of the first key found in its prompt, every other hop gets `answer`."""

    def script(seen: Seen) -> Reply:
        if not seen.is_route:
            return Reply(answer)
        return Reply(next((label for word, label in labels.items() if word in seen.prompt), default))

    return script


class EngineDouble:
    """The server. Enter it to start it on a free port of 127.0.0.1.

    Attributes:
        script: may be replaced while it runs.
        requests: chat requests so far, oldest first; `others` are those to every other path.
        healthy: what `/health` says.
        tokenizes: whether there is a `/tokenize`.
        models: another answer to `/v1/models`; only its status, error and raw body count.
        adapters: may be loaded and unloaded by vLLM's and SGLang's calls; a model `label@hex` must be among them.
        loads, unloads: calls so far, the loads with their path.
        deaf: adapters whose load is answered with 200 and does nothing.
        broken: adapters whose load is refused.
        dull: adapters that answer as the base does.
        fixed: the calls are not there.
        neighbours: answers of the endpoints beside chat, by path; others are 404.
        refusal: why a load fails with 200, as SGLang's does.
    """

    def __init__(
        self,
        script: Script,
        *,
        base: str = "base",
        adapters: tuple[str, ...] = ("L0", "L1", "L2", "L3"),
        context_length: int = 8192,
        fixed: bool = False,
    ) -> None:
        self.script = script
        self.base = base
        self.adapters = adapters
        self.fixed = fixed
        self.refusal = ""
        self.neighbours: dict[str, dict[str, Any]] = {}
        self.loads: list[tuple[str, str]] = []
        self.unloads: list[str] = []
        self.deaf: set[str] = set()
        self.broken: set[str] = set()
        self.dull: set[str] = set()
        self.context_length = context_length
        self.requests: list[Seen] = []
        self.others: list[Seen] = []
        self.healthy = True
        self.tokenizes = True
        self.models: Reply | None = None
        self.origin = ""
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self._chat),
                web.get("/health", self._health),
                web.get("/v1/models", self._models),
                web.post("/tokenize", self._tokenize),
                web.post("/v1/completions", self._neighbour),
                web.post("/v1/embeddings", self._neighbour),
            ]
        )
        if not self.fixed:
            for root in ("", "/v1"):
                app.router.add_post(f"{root}/load_lora_adapter", self._load)
                app.router.add_post(f"{root}/unload_lora_adapter", self._unload)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def arrived(self, count: int, within: float = 5.0) -> Seen:
        """Wait until `count` chat requests have arrived; returns the last of them."""
        async with asyncio.timeout(within), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        seen = await _seen(request)
        async with self._arrived:
            self.requests.append(seen)
            self._arrived.notify_all()
        try:
            response = await self._answer(request, seen)
            seen.outcome = "sent"
            return response
        except (asyncio.CancelledError, ConnectionError):
            seen.outcome = "cancelled"
            raise
        finally:
            seen.ended.set()

    async def _answer(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        if "@" in seen.adapter and seen.adapter not in self.adapters:
            message = f"The model `{seen.adapter}` does not exist."
            return _plain(Reply(status=404, error={"message": message, "type": "NotFoundError", "code": 404}))
        seen.moves = seen.adapter not in (self.base, *self.dull)
        reply = self.script(seen)
        reply = Reply(reply) if isinstance(reply, str) else reply
        await asyncio.sleep(reply.delay)
        if reply.status != 200 or reply.raw is not None:
            return _plain(reply)
        if seen.body.get("stream"):
            return await self._stream(request, seen, reply)
        if reply.gate is not None:
            await reply.gate.wait()
        await self._break(request, reply)
        return web.Response(body=_completion(seen, reply), content_type="application/json", headers=reply.headers)

    async def _stream(self, request: web.Request, seen: Seen, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
        await response.prepare(request)
        pieces = list(_pieces(seen, reply))
        for position, choices in enumerate(pieces):
            if position == reply.gate_after and reply.gate is not None:
                await reply.gate.wait()
            if position == reply.fault_after:
                if reply.fault == "corrupt":
                    await response.write(b'data: {"choices":[{"index":0,"delta":{"content":"lo\n\n')
                elif reply.fault == "error":
                    await response.write(_event({"error": dict(reply.error or {"message": "scripted", "code": 500})}))
                await self._break(request, reply)
            for choice in choices:
                await response.write(_event(_chunk(seen, [choice])))
        if reply.fault_after >= len(pieces):
            await self._break(request, reply)
        if (seen.body.get("stream_options") or {}).get("include_usage"):
            await response.write(_event({**_chunk(seen, []), "usage": _usage(seen, reply)}))
        if reply.fault != "no_done":
            await response.write(b"data: [DONE]\n\n")
        if reply.linger is not None:
            await reply.linger.wait()
        return response

    async def _break(self, request: web.Request, reply: Reply) -> None:
        if reply.fault == "hang":
            await asyncio.Event().wait()
        if reply.fault == "die" and request.transport is not None:
            # What was written before has to leave the buffer first: a crash of an engine loses nothing already sent.
            request.transport.close()
            await asyncio.Event().wait()

    async def _health(self, request: web.Request) -> web.Response:
        self.others.append(await _seen(request))
        return web.Response(status=200 if self.healthy else 503)

    async def _models(self, request: web.Request) -> web.Response:
        self.others.append(await _seen(request))
        if self.models is not None:
            return _plain(self.models)
        base = {"id": self.base, "object": "model", "parent": None, "max_model_len": self.context_length}
        adapters = [{"id": name, "object": "model", "parent": self.base, "root": name} for name in self.adapters]
        return web.json_response({"object": "list", "data": [base, *adapters]})

    async def _load(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = body["lora_name"]
        self.loads.append((name, body["lora_path"]))
        if name in self.broken or name in self.adapters:
            return _plain(Reply(status=400, error={"message": f"adapter {name} cannot be loaded", "code": 400}))
        if self.refusal:
            return web.json_response({"success": False, "error_message": self.refusal})
        if name not in self.deaf:
            self.adapters = (*self.adapters, name)
        return web.json_response({"success": True, "error_message": ""})

    async def _unload(self, request: web.Request) -> web.Response:
        name = (await request.json())["lora_name"]
        self.unloads.append(name)
        if name not in self.adapters:
            return _plain(Reply(status=404, error={"message": f"adapter {name} is not there", "code": 404}))
        self.adapters = tuple(other for other in self.adapters if other != name)
        return web.json_response({"success": True, "error_message": ""})

    async def _neighbour(self, request: web.Request) -> web.Response:
        self.others.append(await _seen(request))
        if request.path not in self.neighbours:
            raise web.HTTPNotFound
        return web.json_response(self.neighbours[request.path])

    async def _tokenize(self, request: web.Request) -> web.Response:
        seen = await _seen(request)
        self.others.append(seen)
        if not self.tokenizes:
            raise web.HTTPNotFound
        return web.json_response({"count": _prompt_tokens(seen), "max_model_len": self.context_length, "tokens": []})


def _plain(reply: Reply) -> web.Response:
    body = reply.raw if reply.raw is not None else _encode({"error": reply.error or {"message": "scripted"}})
    kind = {} if "Content-Type" in reply.headers else {"Content-Type": "application/json"}
    return web.Response(status=reply.status, body=body, headers={**kind, **reply.headers})


async def _seen(request: web.Request) -> Seen:
    headers = {name.lower(): value for name, value in request.headers.items()}
    body = await request.json() if request.can_read_body else {}
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return Seen(request.method, request.path, headers, body, peer[1] if peer else 0)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return content or ""


def _words(text: str) -> list[str]:
    first, *rest = text.split(" ")
    return [first, *(f" {word}" for word in rest)] if text else []


def _prompt_tokens(seen: Seen) -> int:
    return len(seen.prompt.split()) + len(json.dumps(seen.body.get("tools", "")).split()) - 1


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _pieces(seen: Seen, reply: Reply) -> Iterator[list[dict[str, Any]]]:
    """Word by word, the pieces of every choice at that place."""
    count = seen.body.get("n") or 1
    yield [{"index": index, "delta": {"role": "assistant", "content": ""}} for index in range(count)]
    deltas: list[dict[str, Any]] = [{"reasoning_content": word} for word in _words(reply.reasoning)]
    deltas += [{"content": word} for word in _words(reply.text)]
    for place, call in enumerate(reply.calls):
        middle = len(call.arguments) // 2
        function = {"name": call.name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": place, "id": call.id, "type": "function", "function": function}]})
        for piece in (call.arguments[:middle], call.arguments[middle:]):
            deltas.append({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    for delta in deltas:
        yield [{"index": index, "delta": delta, "logprobs": _logprobs(seen, delta)} for index in range(count)]
    if reply.fault != "no_finish":
        yield [{"index": index, "delta": {}, "finish_reason": _finish(reply)} for index in range(count)]


def _logprobs(seen: Seen, delta: dict[str, Any]) -> dict[str, Any] | None:
    if not seen.body.get("logprobs") or "content" not in delta:
        return None
    first, second = (-0.1, -3.0) if seen.moves else (-3.0, -0.1)
    top = [{"token": "a", "logprob": first}, {"token": "b", "logprob": second}] if seen.body.get("top_logprobs") else []
    return {"content": [{"token": delta["content"], "logprob": -0.5, "bytes": None, "top_logprobs": top}]}


def _chunk(seen: Seen, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-double",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": seen.body.get("model"),
        "choices": [{"finish_reason": None, **choice} for choice in choices],
    }


def _completion(seen: Seen, reply: Reply) -> bytes:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    message = {
        "role": "assistant",
        "content": reply.text or None,
        "reasoning": reply.reasoning or None,
        "tool_calls": calls,
    }
    choice = {
        "message": message,
        "finish_reason": None if reply.fault == "no_finish" else _finish(reply),
        "logprobs": _logprobs(seen, {"content": reply.text}),
    }
    body = {
        **_chunk(seen, [{"index": index, **choice} for index in range(seen.body.get("n") or 1)]),
        "object": "chat.completion",
        "usage": _usage(seen, reply),
    }
    return b'{"choices":[{"mess' if reply.fault == "corrupt" else _encode(body)


def _usage(seen: Seen, reply: Reply) -> dict[str, int]:
    prompt = _prompt_tokens(seen)
    completion = len(_words(reply.text) + _words(reply.reasoning)) * (seen.body.get("n") or 1)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _event(value: Any) -> bytes:
    return b"data: " + _encode(value) + b"\n\n"
