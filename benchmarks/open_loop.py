"""Streamed turns with their times: some at once, or as a Poisson process over simulated sessions."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from time import perf_counter

import msgspec

from benchmarks.candidates import Candidate
from benchmarks.http_client import Exchange, Pool
from benchmarks.sessions import Habits, Session
from benchmarks.workload import chat_request


class Turn(msgspec.Struct, frozen=True):
    """A finished turn; seconds from when it was due. `hit` says whether the predictor was right."""

    first: float
    terminal: float
    hit: bool = False
    due: float = 0.0


class Traffic(msgspec.Struct, frozen=True):
    """Turns a second for some seconds, from users with some habits."""

    rate: float
    seconds: float
    habits: Habits
    seed: int


class Users:
    """The client's side of a candidate."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._pool = Pool(candidate.port, keep_body=True)

    async def ask(self, messages: list[dict[str, str]], due: float = 0.0, **fields: object) -> Exchange:
        """Send a conversation and wait for the whole answer.

        Raises:
            RuntimeError: the answer is not 200.
        """
        body = {"model": self._candidate.model, "messages": messages, **fields}
        exchange = await self._pool.exchange(chat_request(body, self._candidate.headers), due)
        if exchange.status != 200:
            raise RuntimeError(f"{self._candidate.name} answered {exchange.status}: {b''.join(exchange.body)[:300]!r}")
        return exchange

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def answer_of(exchange: Exchange) -> str:
    """The text of a streamed answer."""
    texts = []
    for line in b"".join(exchange.body).split(b"\n"):
        if line.startswith(b"data: {"):
            choices = msgspec.json.decode(line[6:])["choices"]
            texts += [choice["delta"].get("content") or "" for choice in choices]
    return "".join(texts)


class OpenLoop:
    """Starts turns when they are due, whatever is still running."""

    def __init__(self, candidate: Candidate, traffic: Traffic) -> None:
        self._traffic = traffic
        self._users = Users(candidate)
        # Two sources, so that arrivals are the same whatever the sessions do.
        self._arrivals = random.Random(traffic.seed)
        self._choices = random.Random(traffic.seed + 1)
        self._resting: deque[Session] = deque()
        self._sessions = 0
        self._turns: list[Turn] = []

    async def run(self) -> list[Turn]:
        """All turns that were due within the time, finished."""
        began = perf_counter()
        due = began
        async with asyncio.TaskGroup() as tasks:
            while (due := due + self._arrivals.expovariate(self._traffic.rate)) < began + self._traffic.seconds:
                await asyncio.sleep(max(0.0, due - perf_counter()))
                tasks.create_task(self._turn(self._session(), due))
        self._users.close()
        return self._turns

    def _session(self) -> Session:
        """A resting session's next turn or, as often as sessions end, a new session."""
        if self._resting and self._choices.random() >= 1 / self._traffic.habits.mean_turns:
            return self._resting.popleft()
        self._sessions += 1
        return Session(self._sessions, self._traffic.habits, self._traffic.seed)

    async def _turn(self, session: Session, due: float) -> None:
        label = session.next_label()
        hit = label == session.predicted
        text = f"Session {self._traffic.seed}-{session.number}, turn {len(session.messages) // 2}. @{label}"
        session.messages.append({"role": "user", "content": text})
        exchange = await self._users.ask(session.messages, due, stream=True)
        self._turns.append(Turn(exchange.first - due, exchange.terminal - due, hit, due))
        session.messages.append({"role": "assistant", "content": answer_of(exchange)})
        if session.end_turn(label):
            self._resting.append(session)


async def run_at_once(candidate: Candidate, label: str, count: int, name: str) -> list[Turn]:
    """First turns of `count` new conversations, all at once."""
    users = Users(candidate)

    async def turn(number: int) -> Turn:
        messages = [{"role": "user", "content": f"Conversation {name}-{number}. @{label}"}]
        exchange = await users.ask(messages, stream=True)
        return Turn(exchange.first - exchange.began, exchange.terminal - exchange.began)

    turns = await asyncio.gather(*(turn(number) for number in range(count)))
    users.close()
    return list(turns)


async def run_in_line(engine: Candidate, count: int) -> list[Turn]:
    """Route, answer and summary in line before the terminal event, as the reference does, straight to the engine."""
    users = Users(engine)

    async def turn(number: int) -> Turn:
        began = perf_counter()
        messages = [{"role": "user", "content": f"Turn {number}. @L2"}]
        choice = {"choice": ["L0", "L1", "L2", "L3"]}
        await users.ask(messages, structured_outputs=choice)
        answer = await users.ask(messages, stream=True)
        summary = await users.ask([*messages, {"role": "user", "content": "Summarize what you did"}])
        return Turn(answer.first - began, summary.end - began)

    turns = await asyncio.gather(*(turn(number) for number in range(count)))
    users.close()
    return list(turns)
