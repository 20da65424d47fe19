"""`macaron chat`: talk to the service in the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Annotated

import aiohttp
import msgspec
import typer
from rich.console import Console

from macaron.cli.connect import ANSWER_SECONDS, DEFAULT_URL, Url, client, expect, read_json
from macaron.errors import MacaronError

EXAMPLES = """Examples:

  macaron chat

  macaron chat "Write a haiku about tea"

Before each answer stands the specialist that gave it. Leave with Ctrl-D, stop an answer with Ctrl-C."""

PROMPT = "you> "


def chat(
    message: Annotated[str, typer.Argument(help="Ask this one thing and leave.")] = "",
    system: Annotated[str, typer.Option(help="A system message to begin with.")] = "",
    pin: Annotated[str, typer.Option(help="Insist on one specialist, such as L2.")] = "",
    url: Url = DEFAULT_URL,
) -> None:
    """Talk to the model; answers stream, each with the name of its specialist."""
    console = Console(markup=False, highlight=False)
    with asyncio.Runner() as runner:
        talk = _Talk(url, runner.run(_model(url)), console, system, pin)
        if message:
            runner.run(talk.ask(message))
            return
        while (asked := _read(console)) is not None:
            if not asked:
                continue
            try:
                runner.run(talk.ask(asked))
            except KeyboardInterrupt:
                console.print("(stopped)", style="dim")
            except MacaronError as error:
                console.print(error.message, style="red")


def _read(console: Console) -> str | None:
    """A line from the person, None where there are no more."""
    # Importing it gives input() a line editor and a history.
    with suppress(ImportError):
        import readline  # noqa: F401
    try:
        return input(PROMPT if sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return None


async def _model(url: str) -> str:
    async with client(url, timeout=ANSWER_SECONDS) as session, session.get("/v1/models") as response:
        models = expect(response, await read_json(response), "data")["data"]
        name: str = expect(response, models[0] if models else None, "id")["id"]
        return name


class _Talk:
    """A conversation: what was said so far, and where the next question goes."""

    def __init__(self, url: str, model: str, console: Console, system: str, pin: str) -> None:
        self._url = url
        self._model = model
        self._console = console
        self._history: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
        self._headers = {"x-macaron-trace": "1"} | ({"x-macaron-adapter": pin} if pin else {})

    async def ask(self, asked: str) -> None:
        """Ask, and print the answer as it comes. What was printed of it is part of the conversation.

        Raises:
            MacaronError: the service cannot answer; the question is forgotten.
        """
        pieces: list[str] = []
        self._history.append({"role": "user", "content": asked})
        try:
            try:
                await self._answer(pieces)
            except MacaronError as error:
                if error.code != "missing_scope" or "x-macaron-trace" not in self._headers:
                    raise
                # A key that may only chat is not told which specialist answers.
                del self._headers["x-macaron-trace"]
                await self._answer(pieces)
        finally:
            if pieces:
                self._history.append({"role": "assistant", "content": "".join(pieces)})
            else:
                self._history.pop()

    async def _answer(self, pieces: list[str]) -> None:
        body = {"model": self._model, "messages": self._history, "stream": True}
        async with (
            client(self._url) as session,
            session.post("/v1/chat/completions", json=body, headers=self._headers) as response,
        ):
            if response.status != 200:
                await read_json(response)
            if label := response.headers.get("x-macaron-adapter"):
                self._console.print(label, style="bold cyan", end=" ")
            try:
                async for text in _texts(response):
                    pieces.append(text)
                    self._console.print(printable(text), end="", soft_wrap=True)
            finally:
                self._console.print()


async def _texts(response: aiohttp.ClientResponse) -> AsyncGenerator[str, None]:
    async for line in response.content:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        chunk = msgspec.json.decode(line[6:])
        if "error" in chunk:
            raise MacaronError(str(chunk["error"]["message"]))
        for choice in chunk["choices"]:
            if text := choice["delta"].get("content"):
                yield text


def printable(text: str) -> str:
    """Text without control characters: a model's answer must not steer the terminal."""
    return "".join(char for char in text if char in "\n\t" or " " <= char < "\x7f" or char > "\x9f")
