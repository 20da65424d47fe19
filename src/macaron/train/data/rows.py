"""The rows that training and evaluation read, one JSON object a line."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Kind = Literal["sft", "preference", "route"]


class Row(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """What every row carries.

    Attributes:
        id: unique in its data set.
        source: who wrote or collected it, such as `bfcl`; accuracy is reported and clustered by it.
        group: what must not be divided by a split, such as one dialogue, function or template; the source if empty.
        language: BCP 47, such as `en` or `zh`.
    """

    id: str
    source: str
    group: str = ""
    language: str = "en"


class SftRow(Row, frozen=True, tag="sft"):
    """A conversation whose assistant messages are learned.

    Attributes:
        messages: in the Chat Completions shape; `tool_calls` arguments are JSON text. A first system message is the
            client's own, after the specialist's identity.
        tools: function tools in the Chat Completions shape.
        given: of the messages, how many at the beginning are only shown; the assistant's among them are not learned.
    """

    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    given: int = 0


class PreferenceRow(Row, frozen=True, tag="preference"):
    """Two answers to one prompt, of which one is better. All three are messages in the Chat Completions shape."""

    prompt: tuple[dict[str, Any], ...] = ()
    chosen: tuple[dict[str, Any], ...] = ()
    rejected: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()


class RouteRow(Row, frozen=True, tag="route"):
    """A conversation and the label that should answer its last user message.

    Attributes:
        messages: the earlier turns and the request; an assistant message may say in `label` who wrote it (the entry
            specialist if it does not).
        label: the label that is right.
    """

    messages: tuple[dict[str, Any], ...] = ()
    label: str = ""


AnyRow = SftRow | PreferenceRow | RouteRow
