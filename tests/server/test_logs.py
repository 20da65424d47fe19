"""Logs: one JSON object a line, and never a secret in it."""

from __future__ import annotations

import json
import logging
import sys
from hashlib import sha256

import pytest

from macaron.server.keys import Caller, Keys
from macaron.server.logs import JsonLines, configure_logging
from tests.doubles.engine_double import Reply, by_words
from tests.server.conftest import Standing
from tests.server.raw import ask, chat_body, request


def record(message: str, *args: object, failed: bool = False) -> logging.LogRecord:
    error = None
    if failed:
        try:
            raise ValueError("broken\nin two lines")
        except ValueError:
            error = sys.exc_info()
    return logging.LogRecord("macaron.test", logging.WARNING, __file__, 1, message, args, error)


@pytest.mark.parametrize(
    ("message", "args", "told"),
    [
        ("plain", (), "plain"),
        ("with %s", ("a value",), "with a value"),
        ("two\nlines \x1b[31m \u2028 \x00", (), "two\nlines \x1b[31m \u2028 \x00"),
        ("a file \udcff", (), "a file \\udcff"),
    ],
)
def test_a_record_is_one_line_of_json(message: str, args: tuple[object, ...], told: str) -> None:
    line = JsonLines().format(record(message, *args))
    assert len(line.splitlines()) == 1 or "\u2028" in line
    assert "\n" not in line
    decoded = json.loads(line)
    assert (decoded["level"], decoded["logger"], decoded["message"]) == ("warning", "macaron.test", told)
    assert decoded["time"].endswith("Z")


def test_an_exception_is_in_the_same_line() -> None:
    line = JsonLines().format(record("it failed", failed=True))
    assert "\n" not in line
    assert "ValueError: broken\nin two lines" in json.loads(line)["exception"]


def test_everything_goes_to_standard_error_as_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    level = root.level
    try:
        configure_logging("info")
        logging.getLogger("macaron.a").info("one")
        logging.getLogger("uvicorn.error").warning("two")
        logging.getLogger("macaron.a").debug("hidden")
    finally:
        root.setLevel(level)
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["one", "two"]


SECRET = "very-secret-key-0123456789"
TEXT = "very private words"


async def test_neither_keys_nor_words_are_logged_whatever_goes_wrong(
    stand: Standing, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys({sha256(SECRET.encode()).digest(): Caller("a", frozenset({"chat"}))})
    script = by_words({}, answer="fine")
    caplog.set_level(logging.DEBUG, "macaron")
    caplog.set_level(logging.INFO, "uvicorn")
    async with stand(script, keys=keys) as running:
        path = "/v1/chat/completions"
        given = {"authorization": f"Bearer {SECRET}"}
        for headers, body in (
            (given, chat_body(TEXT)),
            ({"authorization": f"Bearer {SECRET}x"}, chat_body(TEXT)),
            (given, chat_body(TEXT)[:-1]),
            (given, chat_body(TEXT, lora=TEXT)),
            ({**given, "x-macaron-trace": "1"}, chat_body(TEXT)),
        ):
            await ask(running.port, request("POST", path, headers, body))
        running.double.script = lambda seen: Reply(status=500, error={"message": "failed"})
        await ask(running.port, request("POST", path, given, chat_body(TEXT)))

        async def broken(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(running.service.store, "put_steps", broken)
        running.double.script = script
        failed = await ask(running.port, request("POST", path, given, chat_body(TEXT)))
    assert failed.status == 500
    formatted = "\n".join(JsonLines().format(item) for item in caplog.records)
    assert "ZeroDivisionError" in formatted
    assert SECRET not in formatted
    assert TEXT not in formatted
