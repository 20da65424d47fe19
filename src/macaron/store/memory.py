"""The store without a disk: everything goes with the process, and no other process sees it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from macaron.conversation import Hop, Step
from macaron.errors import StoreError
from macaron.store.base import Config, Limits, Located, Lookup, Totals
from macaron.store.codec import Codec, forget, size_of
from macaron.store.memory_records import MemoryRecords


@dataclass(slots=True)
class Node:
    """A step that is kept, the node it continues, and what it counts for."""

    step: Step
    parent: tuple[str, str] | None
    bytes: int
    deleted: bool = False


@dataclass(slots=True)
class Tree:
    """A session."""

    touched: float
    bytes: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)


class MemoryStore(MemoryRecords):
    """Implements `Store` with dictionaries, bounded by the same limits. Used from one event loop."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.time) -> None:
        super().__init__(limits, clock)
        self._limits = limits
        self._clock = clock
        self._codec = Codec()
        self._config = Config(0, b"")
        self._totals: dict[str | None, Totals] = {None: Totals()}
        self._nodes: dict[tuple[str, str], Node] = {}
        self._trees: OrderedDict[tuple[str, str], Tree] = OrderedDict()
        self._found: dict[Hashable, dict[str, Node]] = {}

    async def put_steps(self, steps: Sequence[Step]) -> None:
        """See `Store.put_steps`."""
        self._check_open()
        sizes = [size_of(self._codec.encode(step), step.summary, step.note) for step in steps]
        keys = {(step.scope, step.id) for step in steps}
        if len(keys) < len(steps) or any(key in self._nodes for key in keys):
            raise StoreError(f"a step of {sorted(key[1] for key in keys)} is there already")
        for step, size in zip(steps, sizes, strict=True):
            self._put(step, size)
        self._expire()

    async def locate(
        self, scope: str, digests: Sequence[str], *, asked: str, session: str | None = None, head: str = ""
    ) -> Lookup:
        """See `Store.locate`."""
        self._check_open()
        for position in range(len(digests) - 1, -1, -1):
            step = self._pick(scope, digests[position], session, head)
            if step is not None:
                again = self._found.get(_retry_place(scope, step.id, asked))
                return Lookup(Located(step, position), next(iter(again.values())).step if again else None)
        return Lookup(None, None)

    async def path(self, scope: str, step_id: str) -> tuple[Step, ...]:
        """See `Store.path`. Begins later where the root's session was evicted."""
        self._check_open()
        steps = []
        key: tuple[str, str] | None = (scope, step_id)
        while key is not None and (node := self._nodes.get(key)) is not None:
            steps.append(node.step)
            key = node.parent
        return tuple(reversed(steps))

    async def session(self, scope: str, session_id: str, limit: int = 200) -> tuple[Step, ...]:
        """See `Store.session`."""
        self._check_open()
        tree = self._trees.get((scope, session_id))
        nodes = list(tree.nodes.values()) if tree else []
        return tuple(node.step for node in nodes[max(0, len(nodes) - limit) :])

    async def put_summary(self, scope: str, step_id: str, summary: str | None, hop: Hop | None) -> None:
        """See `Store.put_summary`. Nothing happens where the step is gone; None leaves an earlier summary."""
        self._check_open()
        node = self._nodes.get((scope, step_id))
        if node is None:
            return
        kept = node.step.summary if summary is None or node.deleted else summary
        hops = node.step.hops if hop is None else (*node.step.hops, hop)
        self._revise(node, replace(node.step, summary=kept, hops=hops))
        if hop is not None:
            self._charge(scope, prompt=hop.usage.prompt, completion=hop.usage.completion)

    async def freeze_note(self, scope: str, step_id: str, note: str) -> str:
        """See `Store.freeze_note`. A step that is gone takes the note without keeping it."""
        self._check_open()
        node = self._nodes.get((scope, step_id))
        if node is None:
            return note
        if node.step.note is None:
            self._revise(node, replace(node.step, note=note))
            return note
        return node.step.note

    async def delete_step(self, scope: str, step_id: str) -> bool:
        """See `Store.delete_step`. The step is still found by its digest; False where it was deleted before."""
        self._check_open()
        node = self._nodes.get((scope, step_id))
        if node is None or node.deleted:
            return False
        node.deleted = True
        self._revise(node, replace(forget(node.step), summary=None, note=""))
        return True

    async def config(self) -> Config:
        """See `Store.config`."""
        self._check_open()
        return self._config

    async def compare_and_set(self, generation: int, document: bytes) -> Config:
        """See `Store.compare_and_set`."""
        self._check_open()
        if generation == self._config.generation:
            self._config = Config(generation + 1, document)
        return self._config

    async def totals(self, scope: str | None = None) -> Totals:
        """See `Store.totals`. A scope whose last session was evicted is forgotten; everybody's tokens are not."""
        self._check_open()
        return self._totals.get(scope, Totals())

    async def expire(self) -> int:
        """See `Store.expire`."""
        self._check_open()
        self._expire_records()
        return self._expire()

    async def ping(self) -> None:
        """See `Store.ping`."""
        self._check_open()

    async def close(self) -> None:
        """See `Store.close`."""
        self._closed = True

    def _put(self, step: Step, size: int) -> None:
        parent = None if step.parent is None else (step.scope, step.parent)
        node = Node(step, parent if parent in self._nodes else None, size)
        key = (step.scope, step.session)
        new = key not in self._trees
        tree = self._trees.setdefault(key, Tree(0.0))
        self._trees.move_to_end(key)
        tree.touched = self._clock()
        tree.bytes += size
        tree.nodes[step.id] = node
        self._nodes[step.scope, step.id] = node
        for place in _places(step):
            self._found.setdefault(place, {})[step.id] = node
        prompt = sum(hop.usage.prompt for hop in step.hops)
        completion = sum(hop.usage.completion for hop in step.hops)
        self._charge(step.scope, steps=1, sessions=int(new), size=size, prompt=prompt, completion=completion)

    def _pick(self, scope: str, digest: str, session: str | None, head: str) -> Step | None:
        own = () if session is None else ((scope, digest, session, head), (scope, digest, session))
        for place in (*own, (scope, digest, None, head), (scope, digest)):
            nodes = self._found.get(place)
            if nodes:
                return nodes[next(reversed(nodes))].step
        return None

    def _revise(self, node: Node, step: Step) -> None:
        key = (step.scope, step.session)
        grown = size_of(self._codec.encode(step), step.summary, step.note) - node.bytes
        self._trees[key].bytes += grown
        node.bytes += grown
        node.step = step
        self._charge(step.scope, size=grown)

    def _charge(
        self, scope: str, *, steps: int = 0, sessions: int = 0, size: int = 0, prompt: int = 0, completion: int = 0
    ) -> None:
        for key in (scope, None):
            old = self._totals.get(key, Totals())
            self._totals[key] = Totals(
                old.steps + steps,
                old.sessions + sessions,
                old.bytes + size,
                old.prompt_tokens + prompt,
                old.completion_tokens + completion,
            )

    def _expire(self) -> int:
        gone = 0
        while self._trees and self._beyond(next(iter(self._trees.values()))):
            (scope, _), tree = self._trees.popitem(last=False)
            for node in tree.nodes.values():
                self._forget(node.step)
            self._charge(scope, steps=-len(tree.nodes), sessions=-1, size=-tree.bytes)
            if self._totals[scope].steps == 0:
                del self._totals[scope]
            gone += 1
        return gone

    def _beyond(self, oldest: Tree) -> bool:
        total, limits = self._totals[None], self._limits
        if total.bytes > limits.max_bytes or total.sessions > limits.max_sessions:
            return True
        return oldest.touched < self._clock() - limits.max_age

    def _forget(self, step: Step) -> None:
        del self._nodes[step.scope, step.id]
        for place in _places(step):
            nodes = self._found[place]
            del nodes[step.id]
            if not nodes:
                del self._found[place]


def _places(step: Step) -> Iterator[Hashable]:
    """Where a step is looked for: by digest, in any session or its own, under any head or its own; and as a retry."""
    base = (step.scope, step.digest)
    yield base
    yield (*base, step.session)
    yield (*base, step.session, step.head)
    yield (*base, None, step.head)
    if step.parent is not None:
        yield _retry_place(step.scope, step.parent, step.asked)


def _retry_place(scope: str, parent: str, asked: str) -> Hashable:
    return ("retry", scope, parent, asked)
