"""Keeps a tokenizer's control tokens out of what clients, tools and models wrote.

Engines turn `<|im_end|>` inside a message into the real token, so that whoever writes it leaves his role in the prompt.
A word joiner after the token's first character makes it ordinary text: a reader sees no difference, a tokenizer does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from macaron.engine.base import ChatMessage
from macaron.errors import BadRequest, ConfigError

WORD_JOINER: Final = "\u2060"

# What a chat template may render besides the messages. `stop` is not in it: naming a token there is legitimate.
RENDERED: Final = ("tools", "functions", "tool_choice", "response_format", "documents", "chat_template_kwargs")

# Engines parse a call's arguments before they render them, so a token may also be hidden in JSON escapes.
SHORT_ESCAPES: Final = {"/": r"\/", '"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


class SpecialTokens:
    """The control tokens of one tokenizer, and how to neutralise them.

    Args:
        tokens: the tokens as they are written in text; empty for a tokenizer without any, which makes this a no-op.

    Raises:
        ConfigError: a token is shorter than two characters or contains the word joiner, so it cannot be broken by it.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        for token in tokens:
            _check(token)
        self._start = re.compile(_starts(tokens), re.DOTALL) if tokens else None
        # How an escape looks in a text, and once that text is itself part of encoded JSON.
        short = {character for token in tokens for character in token if character in SHORT_ESCAPES}
        self._escapes = (r"\u", *(SHORT_ESCAPES[character] for character in sorted(short)))
        self._encoded_escapes = tuple(_encoded(escape) for escape in self._escapes)
        # One pattern a first character: the search for a fixed beginning is many times faster than one for a set.
        families = _families(tokens)
        self._plain = tuple(re.compile("|".join(map(re.escape, family))) for family in families)
        self._encoded = tuple(re.compile(b"|".join(re.escape(_encoded(token)) for token in f)) for f in families)

    def neutralise(self, text: str) -> str:
        """`text` without any special token, be it plain or in JSON escapes; the same object where there is none."""
        if self._start is None or not self._may_hold(text):
            return text
        return self._start.sub(rf"\g<0>{WORD_JOINER}", text) if self._start.search(text) else text

    def neutralise_body(
        self, messages: Sequence[ChatMessage], options: Mapping[str, Any]
    ) -> tuple[Sequence[ChatMessage], Mapping[str, Any]]:
        """Neutralise every string of the messages and of the options that a template may render, keys included.

        A token split over text parts of one message counts too, since templates join them. Nothing is changed in
        place; what needs no change is returned as the same object.

        Raises:
            BadRequest: the messages or tools are nested too deep, or hold something that is not JSON.
        """
        if self._start is None:
            return messages, options
        rendered = {key: options[key] for key in RENDERED if key in options}
        if not self.may_be_in(_encode([messages, rendered]), messages):
            return messages, options
        try:
            return self._rewritten(messages, options, rendered)
        except RecursionError:
            raise BadRequest("The messages or tools are nested too deep; flatten them.", param="messages") from None

    def may_be_in(self, encoded: bytes, messages: Sequence[ChatMessage]) -> bool:
        """Whether a request needs `neutralise_body`, from its JSON and its messages; False is certain.

        For callers that encode the request anyway, so that a clean one costs one search over its bytes.
        """
        if self._start is None:
            return False
        return (
            any(pattern.search(encoded) for pattern in self._encoded)
            or any(escape in encoded for escape in self._encoded_escapes)
            or any(self._joins_to_token(message.get("content")) for message in messages)
        )

    def _may_hold(self, text: str) -> bool:
        return any(pattern.search(text) for pattern in self._plain) or any(escape in text for escape in self._escapes)

    def _rewritten(
        self, messages: Sequence[ChatMessage], options: Mapping[str, Any], rendered: dict[str, Any]
    ) -> tuple[Sequence[ChatMessage], Mapping[str, Any]]:
        said = [self._message(message) for message in messages]
        shown = self.neutralise_value(rendered)
        same = all(new is old for new, old in zip(said, messages, strict=True))
        return (messages if same else said), (options if shown is rendered else {**options, **shown})

    def _message(self, message: ChatMessage) -> ChatMessage:
        content = message.get("content")
        if isinstance(content, list) and self._joins_to_token(content):
            message = {**message, "content": self._parts(content)}
        cleaned: ChatMessage = self.neutralise_value(message)
        return cleaned

    def neutralise_value(self, value: Any) -> Any:
        """Any JSON value with every string in it neutralised; the same object where nothing needs it."""
        match value:
            case str():
                return self.neutralise(value)
            case list() | tuple():
                items = [self.neutralise_value(item) for item in value]
                return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
            case dict():
                pairs = [(self.neutralise_value(key), self.neutralise_value(item)) for key, item in value.items()]
                old_pairs = value.items()
                same = all(new[0] is old[0] and new[1] is old[1] for new, old in zip(pairs, old_pairs, strict=True))
                return value if same else dict(pairs)
            case _:
                return value

    def _joins_to_token(self, content: Any) -> bool:
        if self._start is None or not isinstance(content, list) or len(content) < 2:
            return False
        joined = "".join(_texts(content))
        return self._may_hold(joined) and self._start.search(joined) is not None

    def _parts(self, parts: list[Any]) -> list[Any]:
        found = self._start.finditer("".join(_texts(parts))) if self._start else ()
        cuts = iter([match.end() for match in found])
        cut, offset, cleaned = next(cuts, None), 0, []
        for part in parts:
            text = _text_of(part)
            pieces, begin = [], 0
            while text and cut is not None and cut <= offset + len(text):
                pieces.append(text[begin : cut - offset])
                begin, cut = cut - offset, next(cuts, None)
            offset += len(text)
            cleaned.append(_with_text(part, WORD_JOINER.join([*pieces, text[begin:]])) if pieces else part)
        return cleaned


def _check(token: str) -> None:
    if len(token) < 2 or WORD_JOINER in token:
        raise ConfigError(
            f"{token!r} cannot be neutralised by a word joiner; leave it out of special_tokens.",
            param="engine.special_tokens",
        )


def _longest_first(tokens: Iterable[str]) -> list[str]:
    return sorted(set(tokens), key=lambda token: (-len(token), token))


def _families(tokens: Sequence[str]) -> list[list[str]]:
    """The tokens by their first character."""
    families: dict[str, list[str]] = {}
    for token in _longest_first(tokens):
        families.setdefault(token[0], []).append(token)
    return list(families.values())


def _starts(tokens: Sequence[str]) -> str:
    """A pattern that consumes only a token's first character, so that overlapping tokens are all found."""
    starts = []
    for family in _families(tokens):
        rests = "|".join("".join(map(_written, token[1:])) for token in family)
        starts.append(f"{_written(family[0][0])}(?={rests})")
    return "|".join(starts)


def _written(character: str) -> str:
    """The ways to write a character: as itself, or as an escape of JSON (RFC 8259, section 7)."""
    units = memoryview(character.encode("utf-16-be", "surrogatepass")).cast("B")
    escape = "".join(
        r"\\u" + "".join(_hex_digit(digit) for digit in f"{units[at] << 8 | units[at + 1]:04x}")
        for at in range(0, len(units), 2)
    )
    short = f"|{re.escape(SHORT_ESCAPES[character])}" if character in SHORT_ESCAPES else ""
    return f"(?:{re.escape(character)}|{escape}{short})"


def _hex_digit(digit: str) -> str:
    return f"[{digit}{digit.upper()}]" if digit.isalpha() else digit


def _encoded(text: str) -> bytes:
    return _encode(text)[1:-1]


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except RecursionError:
        raise BadRequest("The messages or tools are nested too deep; flatten them.", param="messages") from None
    except (TypeError, ValueError) as error:
        raise BadRequest(f"The request cannot be written as JSON: {error}.", param="messages") from None


def _texts(parts: Sequence[Any]) -> list[str]:
    return [_text_of(part) for part in parts]


def _text_of(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else ""


def _with_text(part: Any, text: str) -> Any:
    return {**part, "text": text} if isinstance(part, dict) else text
