"""`macaron chat`: talk to the service in the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import aiohttp
import msgspec
import typer
from rich.console import Console

from macaron.cli.connect import DEFAULT_URL, Url, client, read_json
from macaron.errors import MacaronError

EXAMPLES = """Examples:

  macaron chat

  macaron chat "Write a haiku about tea"

Before each answer stands the specialist that gave it. Leave with Ctrl-D, stop an answer with Ctrl-C."""

Message = dict[str, Any]


def chat(
    message: Annotated[str, typer.Argument(help="Ask this one thing and leave.")] = "",
    system: Annotated[str, typer.Option(help="A system message to begin with.")] = "",
    pin: Annotated[str, typer.Option(help="Insist on one specialist, such as L2.")] = "",
    url: Url = DEFAULT_URL,
) -> None:
    """Talk to the model; answers stream, each with the name of its specialist."""
    history: list[Message] = [{"role": "system", "content": system}] if system else []
    asyncio.run(_chat(url, message, history, pin))


async def _chat(url: str, message: str, history: list[Message], pin: str) -> None:
    console = Console()
    async with client(url) as session:
        async with session.get("/v1/models") as response:
            model = (await read_json(response))["data"][0]["id"]
        while True:
            asked = message or await asyncio.to_thread(_read, console)
            if not asked:
                return
            history.append({"role": "user", "content": asked})
            try:
                answer = await _answer(session, console, model, history, pin)
            except MacaronError as error:
                console.print(error.message, style="red")
                history.pop()
                if message:
                    raise
                continue
            history.append({"role": "assistant", "content": answer})
            if message:
                return


def _read(console: Console) -> str:
    try:
        return console.input("[bold]you[/bold] ").strip() or " "
    except EOFError:
        console.print()
        return ""


async def _answer(
    session: aiohttp.ClientSession, console: Console, model: str, history: list[Message], pin: str
) -> str:
    body = {"model": model, "messages": history, "stream": True}
    headers = {"x-macaron-trace": "1"} | ({"x-macaron-adapter": pin} if pin else {})
    pieces: list[str] = []
    async with session.post("/v1/chat/completions", json=body, headers=headers) as response:
        if response.status != 200:
            await read_json(response)
        console.print(f"[bold cyan]{response.headers.get('x-macaron-adapter', '?')}[/bold cyan]", end=" ")
        async for text in _texts(response):
            pieces.append(text)
            console.print(text, end="", markup=False, highlight=False, soft_wrap=True)
    console.print()
    return "".join(pieces)


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
