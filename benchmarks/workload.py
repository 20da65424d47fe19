"""The requests a benchmark sends: a fixed body around a number that makes each one a request of its own."""

from __future__ import annotations

import msgspec

from benchmarks.replies import answer_text

NUMBER_FORMAT = b"%012d"
MARK = "#NUMBER#####"
FILLER = "The order of the shells matters less than the time they rest before baking. "
TURN_BYTES = 5000


class Workload(msgspec.Struct, frozen=True):
    """What a request looks like.

    Attributes:
        model: the name asked for.
        label: what the double's route hop says.
        tokens: length of the double's answer; above the summary cap a turn has a summary hop.
        every: milliseconds between two of them; 0 for all at once.
        stream: whether the client asks for a stream.
        history_bytes: text of earlier turns in every request.
        known_history: the earlier turns are those of the connection's one conversation, which the service has answered
            before; else they differ from request to request, and the service sees them for the first time.
    """

    model: str
    label: str = "L2"
    tokens: int = 256
    every: int = 0
    stream: bool = False
    history_bytes: int = 0
    known_history: bool = False


class Template(msgspec.Struct, frozen=True):
    """A request in pieces; the request's number goes between them. `priming` makes the history known first."""

    pieces: tuple[bytes, ...]
    priming: bytes = b""

    def request(self, number: int) -> bytes:
        """The whole HTTP request, headers and body."""
        return (NUMBER_FORMAT % number).join(self.pieces)


def build_template(workload: Workload, connection: int, headers: dict[str, str]) -> Template:
    """The request of one connection, whose own conversation is named by `connection`."""
    controls = f"@{workload.label} @n={workload.tokens}" + (f" @every={workload.every}" if workload.every else "")
    messages = _history(workload.history_bytes, f"{connection:012d}" if workload.known_history else MARK)
    priming = b""
    if workload.known_history:
        messages.append({"role": "user", "content": f"Conversation {connection}, the question before. {controls}"})
        priming = _request(workload, messages, headers)
        messages.append({"role": "assistant", "content": answer_text(workload.tokens)})
    messages.append({"role": "user", "content": f"Request {MARK}: how long do the shells rest? {controls}"})
    return Template(tuple(_request(workload, messages, headers).split(MARK.encode())), priming)


def chat_request(body: dict[str, object], headers: dict[str, str]) -> bytes:
    """A chat request with its HTTP headers."""
    data = msgspec.json.encode(body)
    fields = {"host": "127.0.0.1", "content-type": "application/json", **headers, "content-length": str(len(data))}
    head = "POST /v1/chat/completions HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in fields.items())
    return head.encode() + b"\r\n" + data


def _request(workload: Workload, messages: list[dict[str, str]], headers: dict[str, str]) -> bytes:
    return chat_request({"model": workload.model, "messages": messages, "stream": workload.stream}, headers)


def _history(size: int, conversation: str) -> list[dict[str, str]]:
    """Turns of equal length that together hold `size` bytes of text."""
    count = 2 * max(1, round(size / TURN_BYTES / 2)) if size else 0
    text = (FILLER * (size // max(1, count) // len(FILLER) + 1))[: size // max(1, count)]
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": f"Conversation {conversation}, {n}. {text}"} for n in range(count)]
