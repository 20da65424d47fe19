"""An administrator of a service that runs as processes, and clients that stream from it all the time."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from macaron.registry.desired import engine_name
from macaron.registry.revision import adapter_revision
from tests.processes import PATIENCE, Service, until

MODEL = "macaron-demi"
CARD = ("--name", "Poet", "--description", "writes poems about the sea", "--prompt")


class Desk:
    """Commands of an administrator against a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.key = service.home.key_file.read_text().strip()

    def run(self, *arguments: str) -> str:
        done = self.service.home.run("adapter", *arguments, "--url", self.service.url)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def register(self, folder: Path, label: str = "L4", *more: str) -> str:
        """Register, and wait for the proof; returns the name in the engine."""
        prompt = folder.parent / "prompt.md"
        prompt.write_text("You are a poet.")
        self.run("register", str(folder), "--label", label, "--no-wait", *CARD, str(prompt), *more)
        # The probe waits its turn behind the others' answers, which takes long beside a busy neighbour.
        until(lambda: self.engine_of(label) == "ready", PATIENCE, "the engine has proved it")
        return engine_name(label, adapter_revision(folder))

    def newest(self, label: str = "L4") -> Any:
        """The newest revision of a label."""
        return self.get(f"/{label}")["revisions"][-1]

    def engine_of(self, label: str) -> str:
        """How far the engine is with the newest revision of a label."""
        engine = self.newest(label)["engine"]
        return str(engine["state"]) if engine else ""

    def promote(self, label: str = "L4") -> None:
        self.run("promote", label, "--waive-route-check", "a test")

    def list(self) -> Any:
        return self.get("")

    def get(self, path: str) -> Any:
        """What the service says of its adapters."""
        http = self.service.http(self.key, seconds=PATIENCE)
        answer = http.get(f"/v1/admin/adapters{path}")
        http.close()
        assert answer.status == 200, answer.text
        return answer.json

    def verb(self, label: str, verb: str, **body: Any) -> int:
        """A verb by a request of its own, for when there are many; returns the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=PATIENCE)
        head = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        connection.request("POST", f"/v1/admin/adapters/{label}/{verb}", json.dumps(body), head)
        with connection.getresponse() as response:
            response.read()
        connection.close()
        return response.status

    def ask(self, label: str, text: str = "What is tea?", tokens: int = 8, model: str = MODEL) -> tuple[int, str, str]:
        """Status, text and revision of an answer by a label."""
        http = self.service.http(self.key, seconds=PATIENCE)
        headers = {"x-macaron-trace": "1", "x-macaron-adapter": label}
        answer = http.chat(text, model, headers, temperature=0, max_tokens=tokens)
        http.close()
        if answer.status != 200:
            return answer.status, answer.text, ""
        said = answer.json
        return 200, said["choices"][0]["message"]["content"], said["metadata"]["macaron_revision"]

    def stream(self, label: str, text: str, tokens: int) -> tuple[int, str, str]:
        """Status, text and label of a streamed answer."""
        http = self.service.http(self.key, seconds=PATIENCE)
        headers = {"x-macaron-trace": "1", "x-macaron-adapter": label}
        answer = http.chat(text, MODEL, headers, temperature=0, max_tokens=tokens, stream=True)
        http.close()
        if answer.status != 200:
            return answer.status, answer.text, ""
        choices = [choice for event in answer.events for choice in event.get("choices", ())]
        ends = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
        assert ends == ["length"], answer.text
        return 200, "".join(choice["delta"].get("content") or "" for choice in choices), answer.headers[LABEL]


LABEL = "x-macaron-adapter"


class Said(NamedTuple):
    """A streamed answer, with what its label was to say when it began and when it ended."""

    label: str
    status: int
    text: str
    by: str
    wanted: frozenset[str]


class Streams:
    """Clients that stream all the time, each from a label; every answer is kept.

    Attributes:
        words: what each label is to say; several while it changes from one to another.
        newcomer: a label that every fourth client asks in its own's place, where it is not empty.
    """

    def __init__(self, desk: Desk, words: dict[str, str], count: int, tokens: int = 4) -> None:
        self._desk = desk
        self._stop = threading.Event()
        self._tokens = tokens
        self.words = {label: frozenset({word}) for label, word in words.items()}
        self.newcomer = ""
        self.asking: Counter[str] = Counter()
        self.said: list[Said] = []
        self.faults: list[Exception] = []
        self.done: Counter[int] = Counter()
        labels = tuple(words)
        self._threads = [threading.Thread(target=self._loop, args=(n, labels)) for n in range(count)]

    def _loop(self, number: int, labels: Sequence[str]) -> None:
        try:
            while not self._stop.is_set():
                # Once: it may change between two looks at it.
                newcomer = self.newcomer
                label = newcomer if newcomer and number % 4 == 3 else labels[number % len(labels)]
                self.asking[label] += 1
                before = self.words[label]
                status, text, by = self._desk.stream(label, f"What is tea? {number}", self._tokens)
                self.said.append(Said(label, status, text, by, before | self.words[label]))
                self.asking[label] -= 1
                self.done[number] += 1
        except Exception as error:
            self.faults.append(error)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(PATIENCE)

    def until_all(self, more: int = 1) -> None:
        """Wait until every client has had so many more answers."""
        before = dict(self.done)

        def had() -> bool:
            assert not self.faults, self.faults
            return all(self.done[n] >= before.get(n, 0) + more for n in range(len(self._threads)))

        until(had, PATIENCE, "every client is answered")

    def until_none_asks(self, label: str) -> None:
        """Wait until no client waits for a label's answer."""
        until(lambda: not self.asking[label], PATIENCE, f"nobody asks {label}")

    def check(self) -> None:
        """Every answer whole, by the label that was asked, in its word only."""
        assert not self.faults, self.faults
        for each in self.said:
            assert (each.status, each.by) == (200, each.label), each
            words = each.text.split()
            # A token may be a line's end.
            assert len(words) in (self._tokens - 1, self._tokens), each
            assert len(set(words)) == 1, each
            assert words[0] in each.wanted, each


def resident(pid: int) -> int:
    """Bytes of a process that are in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} says nothing of its memory")


def settled(pid: int, seconds: float = 5.0) -> int:
    """The least memory of a process within a time: what one moment's work needs is not what is kept."""
    end, least = time.monotonic() + seconds, resident(pid)
    while time.monotonic() < end:
        time.sleep(0.25)
        least = min(least, resident(pid))
    return least
