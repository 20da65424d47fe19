"""Finds the session a request continues. The visible history decides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from macaron.conversation import Item, Message, Reasoning, Step, Text, ToolCall, ToolResult
from macaron.mol.identity import ItemDigests, answer_ends, by_model, chain, is_visible, item_digest, visible_count
from macaron.store.base import Store

LARGE = 524_288
"""Characters of a conversation from which on it is digested on a thread."""


class TurnRequest(Struct, frozen=True):
    """A request in neutral terms.

    Attributes:
        id: the response id the client will see.
        tenant: whose key it came with.
        user: end user within the tenant, empty where the client names none.
        system: the leading run of system and developer messages.
        options: fields for the engine that passed the allow list, without `n` and `tools`.
        session: id of the session the client named, None where it named none.
        pin: label the caller may and does insist on.
        parent: the step that the request names as the one it continues, if it does.
        keep: whether text may be kept; without, only digests, label, revision and counts are.
        beside_results: the user's last words stand in one wire message with the tool results before them.
        carriers: what the client was given of earlier turns to keep for us, oldest first.
        carry: the client wants such a carrier of this turn.
    """

    id: str
    tenant: str
    items: tuple[Item, ...]
    user: str = ""
    system: tuple[Message, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    options: dict[str, Any] = {}
    stream: bool = False
    n: int = 1
    session: str | None = None
    pin: str | None = None
    parent: str | None = None
    keep: bool = True
    beside_results: bool = False
    carriers: tuple[str, ...] = ()
    carry: bool = False

    @property
    def scope(self) -> str:
        """Isolates what is stored: tenant, and end user where there is one."""
        return f"{self.tenant}\x1f{self.user}" if self.user else self.tenant


class Found(Struct, frozen=True):
    """Where a request stands in the tree.

    Attributes:
        path: known steps from the root, with their items; empty for a new conversation.
        new: the items after them, call ids as the path has them.
        asked: digest of the whole visible history.
        depth: its visible items.
        hidden: ids of the path's steps whose summaries and reasoning may be used. It is decided for each step, so that
            a history extended once under another head does not open what was made under the first.
        retry: the first step that answered the same question at the same place.
        unkept: ids of the path's steps whose text is not kept, so that nothing made of it may be either.
        digests: of the visible history after each item of the request.
    """

    path: tuple[Step, ...]
    new: tuple[Item, ...]
    asked: str
    depth: int
    hidden: frozenset[str]
    retry: Step | None
    unkept: frozenset[str] = frozenset()
    digests: Sequence[str] = ()

    @property
    def parent(self) -> Step | None:
        """The step the request continues."""
        return self.path[-1] if self.path else None


async def find(store: Store, request: TurnRequest, head: str, remembered: ItemDigests | None = None) -> Found:
    """Look a request up: the longest known prefix of its visible history, in one batched look-up."""
    items = request.items
    digests = await _digests(items, remembered or ItemDigests())
    ends = answer_ends(items)
    asked, depth = digests[-1], visible_count(items)
    new = Found((), items, asked, depth, hidden=frozenset(), retry=None, digests=digests)
    if not ends:
        return new
    scope = request.scope
    lookup = await store.locate(scope, [digests[end] for end in ends], asked=asked, session=request.session, head=head)
    if lookup.prefix is None:
        return new
    position, retry = lookup.prefix.position, lookup.asked
    path = await store.path(scope, lookup.prefix.step.id)
    if request.parent is not None and request.parent != lookup.prefix.step.id:
        named = await store.path(scope, request.parent)
        at = _ends_at(named, digests, ends)
        if at is not None:
            path, position, retry = named, at, None
    if not path:
        return new
    cut = ends[position] + 1
    session = path[-1].session if path[-1].id == request.parent else request.session
    hidden = frozenset(step.id for step in path if step.head == head or step.session == session)
    unkept = frozenset(step.id for step in path if step.outputs is None)
    path, ids = hydrate([step if step.id in hidden else _without_reasoning(step) for step in path], items[:cut])
    return Found(path, rename_calls(items[cut:], ids), asked, depth, hidden, retry, unkept, digests)


def _ends_at(path: Sequence[Step], digests: Sequence[str], ends: Sequence[int]) -> int | None:
    """The position among `ends` at which a path ends, None where it is another history."""
    positions = (at for at in range(len(ends) - 1, -1, -1) if path and digests[ends[at]] == path[-1].digest)
    return next(positions, None)


async def _digests(items: Sequence[Item], remembered: ItemDigests) -> list[str]:
    """The chain of the items; what would hold up the event loop is made on a thread."""
    if not (is_large(items) and is_large(unknown := remembered.unknown(items))):
        return chain(items, digest_of=remembered)
    made = await asyncio.to_thread(lambda: [item_digest(item) for item in unknown])
    fresh = {id(item): digest for item, digest in zip(unknown, made, strict=True)}
    for item, digest in zip(unknown, made, strict=True):
        remembered.learn(item, digest)
    return chain(items, digest_of=lambda item: fresh[id(item)] if id(item) in fresh else remembered(item))


def hydrate(path: Sequence[Step], items: Sequence[Item]) -> tuple[tuple[Step, ...], dict[str, str]]:
    """Give steps whose items were not kept the items of the request, and map the request's call ids to the path's.

    The path and the items are the same visible history, so that positions agree. Where the root of the path has been
    evicted, what the request says before it is put in front.
    """
    cursor = _Cursor(items)
    earlier = cursor.take(visible_count(items) - sum(step.input_count + step.output_count for step in path))
    steps: list[Step] = []
    ids: dict[str, str] = {}
    for step in path:
        inputs, outputs = cursor.take(step.input_count), cursor.take(step.output_count)
        ids |= _renamed(inputs, step.inputs) | _renamed(outputs, step.outputs)
        if earlier or step.inputs is None or step.outputs is None:
            inputs = inputs if step.inputs is None else step.inputs
            outputs = outputs if step.outputs is None else step.outputs
            step = replace(step, inputs=(*earlier, *inputs), outputs=outputs)
            earlier = ()
        steps.append(step)
    return tuple(steps), ids


def is_large(items: Sequence[Item]) -> bool:
    """Whether digesting the items takes so long that it should not be done on the event loop."""
    length = 0
    for item in items:
        if isinstance(item, Message | ToolResult):
            for part in item.parts:
                length += len(part.text) if isinstance(part, Text) else 0
        elif isinstance(item, ToolCall):
            length += len(item.arguments)
    return length > LARGE


class _Cursor:
    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._at = 0

    def take(self, count: int) -> tuple[Item, ...]:
        """The next items up to and with `count` visible ones."""
        start = self._at
        while count > 0 and self._at < len(self._items):
            count -= is_visible(self._items[self._at])
            self._at += 1
        return tuple(self._items[start : self._at])


def _renamed(sent: Sequence[Item], kept: Sequence[Item] | None) -> dict[str, str]:
    if kept is None:
        return {}
    pairs = zip(
        (item for item in sent if isinstance(item, ToolCall)),
        (item for item in kept if isinstance(item, ToolCall)),
        strict=False,
    )
    # Equal ids too: a client may use one id again and again, and the last call it stands for counts.
    return {a.call_id: b.call_id for a, b in pairs}


def _without_reasoning(step: Step) -> Step:
    outputs = step.outputs and tuple(item for item in step.outputs if not isinstance(item, Reasoning))
    return replace(step, outputs=outputs)


def rename_calls(items: Sequence[Item], ids: dict[str, str]) -> tuple[Item, ...]:
    """Tool results with the call ids the path knows, for clients that rewrite ids."""
    if not ids:
        return tuple(items)
    return tuple(
        replace(item, call_id=ids[item.call_id]) if isinstance(item, ToolResult) and item.call_id in ids else item
        for item in items
    )


def continues_tools(found: Found, beside_results: bool = False) -> bool:
    """Whether a request brings results of its parent's open calls, with no user message after them: the same turn.

    Args:
        beside_results: what the user says after the results is part of their message.
    """
    if found.parent is None or any(map(by_model, found.new)):
        return False
    open_calls = {item.call_id for item in found.parent.outputs or () if isinstance(item, ToolCall)}
    results = [index for index, item in enumerate(found.new) if _answers(item, open_calls)]
    if not results:
        return False
    if beside_results:
        return True
    return not any(isinstance(item, Message) and item.role == "user" for item in found.new[results[-1] :])


def _answers(item: Item, calls: set[str]) -> bool:
    return isinstance(item, ToolResult) and item.call_id in calls
