"""The route check: a service routes rows with and without a newcomer, on its own engine, behind every live hop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from macaron.errors import BadRequest, ConfigError, Conflict, TimedOut, Unavailable
from macaron.mol.dialogue import labels_in
from macaron.mol.unhurried import Unhurried
from macaron.registry import desired as state
from macaron.registry.cards import Registry, Specialist
from macaron.registry.check.report import shown
from macaron.registry.desired import Entry, Installed, Key, permit
from macaron.registry.verdict import MARGIN, Routed, Verdict, verdict
from macaron.server.adapters.parts import Adapters

TENANT = "macaron-check"
"""No key's rows lie in its cache, and no key's rows are found there."""

MAX_ROWS = 5000
MAX_MESSAGES = 64
MAX_TEXT = 65_536
CHECK_SECONDS = 3600.0
UNCHANGED = "neither a card nor the router changes"


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation that ends with a request, and the label that is right for it.

    Attributes:
        place: where it stands, for messages about it.
    """

    messages: tuple[dict[str, Any], ...]
    label: str
    place: str = ""


class Progress(NamedTuple):
    """Hops made, and hops in all."""

    done: int
    total: int


class Found(NamedTuple):
    """What was recorded, the numbers under it, and the entry that has it now."""

    check: state.RouteCheck
    verdict: Verdict
    entry: Entry


class _Plan(NamedTuple):
    key: Key
    revision: str
    standing: str
    before: Registry
    after: Registry
    rows: tuple[Row, ...]
    margin: float

    @property
    def alike(self) -> bool:
        """Whether the newcomer changes nothing that decides a route."""
        return _decides(self.before) == _decides(self.after)


class RouteChecks:
    """Runs them, one at a time in a worker."""

    def __init__(self, adapters: Adapters) -> None:
        self._adapters = adapters
        self._running = False

    async def plan(
        self, by: str, key: Key, revision: str, rows: Sequence[Row], margin: float = MARGIN
    ) -> AsyncGenerator[Progress | Found, None]:
        """Look at what is asked for; the iterator then carries it out and ends with `Found`.

        Args:
            revision: the newest that waits for its promotion, if empty.
            rows: beside the profile's own: examples of the newcomer's, and others.

        Raises:
            NotFound, Forbidden: the revision is not there, or not for `by` to change.
            BadRequest: a row cannot be used, or there are none to speak of.
            Conflict: it cannot be checked now.
        """
        permit(by, key)
        if not 0 <= margin < 1:
            raise BadRequest(f"margin is {margin}; it must be 0 or more and below 1", param="margin", code="bad_margin")
        profile = self._adapters.service.profile
        desired = (await self._adapters.document.read()).desired
        item = _waiting(desired.find(key), revision)
        plan = _Plan(
            key=key,
            revision=item.revision,
            standing=state.standing(profile, desired, key.tenant),
            before=state.in_force(profile, desired, key.tenant),
            after=state.in_force(profile, state.supposed(desired, key, item.revision), key.tenant),
            rows=(*self._own_rows(), *rows),
            margin=margin,
        )
        _check_rows(plan, rows)
        for registry in (plan.before, plan.after):
            self._require_loaded(registry.entry_specialist)
        self._require_idle()
        return self._run(plan)

    async def _run(self, plan: _Plan) -> AsyncGenerator[Progress | Found, None]:
        self._require_idle()
        self._running = True
        try:
            before: dict[int, str] = {}
            after: dict[int, str] = {}
            if not plan.alike:
                rows = list(enumerate(plan.rows))
                known = [(number, row) for number, row in rows if plan.before.get(row.label) is not None]
                total, end = len(known) + len(rows), asyncio.get_running_loop().time() + CHECK_SECONDS
                yield Progress(0, total)
                # All without the newcomer, then all with it: what each time they share of a prompt stays in the cache.
                for registry, asked, found in ((plan.before, known, before), (plan.after, rows, after)):
                    async with aclosing(self._route(registry, asked, found, end)) as steps:
                        async for _ in steps:
                            yield Progress(len(before) + len(after), total)
            yield await self._record(plan, before, after)
        finally:
            self._running = False

    async def _route(
        self, registry: Registry, rows: Sequence[tuple[int, Row]], found: dict[int, str], end: float
    ) -> AsyncGenerator[None, None]:
        service = self._adapters.service
        adapter = registry.entry_specialist.engine_name
        asker = Unhurried(service.engine, registry, service.contract, service.route_template(registry), TENANT)
        await service.residency.present(adapter)
        with service.residency.use(adapter):
            for number, row in rows:
                if service.admission.closing:
                    raise Unavailable("The service is stopping; check again when it is back.", code="stopping")
                if asyncio.get_running_loop().time() > end:
                    reason = f"The route check was not done within {CHECK_SECONDS:g} s"
                    remedy = "give fewer rows, or ask when less is going on"
                    raise TimedOut(f"{reason}; {remedy}.", code="route_check_slow")
                found[number] = await asker.route(row.messages)
                yield

    async def _record(self, plan: _Plan, before: Mapping[int, str], after: Mapping[int, str]) -> Found:
        rows = [Routed(plan.rows[number].label, before.get(number), label) for number, label in after.items()]
        made = verdict(plan.key.label, plan.before.labels, rows, plan.margin)
        passed, detail = (True, UNCHANGED) if plan.alike else (made.passed, made.detail)
        check = state.RouteCheck(passed, standing=plan.standing, detail=detail)
        config = await self._adapters.document.change(
            lambda desired: state.route_checked(desired, plan.key, plan.revision, check)
        )
        await self._adapters.follower.followed(config.generation)
        return Found(check, made, config.desired.find(plan.key))

    def _own_rows(self) -> Iterator[Row]:
        """The rows that the profile names."""
        text = self._adapters.service.loaded.text("mol.route.examples_path", "")
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield _row(line, f"mol.route.examples_path, line {number}")

    def _require_loaded(self, entry: Specialist) -> None:
        launched = self._adapters.service.profile.get(entry.label)
        if launched is not None and launched.engine_name == entry.engine_name:
            return
        findings = self._adapters.follower.findings
        if entry.engine_name not in findings.proved | findings.parked:
            message = f"{entry.engine_name} is not loaded at the moment; `macaron adapter show` says why"
            raise Conflict(message, param="revision", code="not_loaded")

    def _require_idle(self) -> None:
        if self._running:
            raise Conflict("a route check is running; wait for its end", param="label", code="route_check_running")


class _Line(Struct, frozen=True):
    """A line of the profile's rows, as data sets have them; what else stands in it is passed over."""

    messages: tuple[dict[str, Any], ...]
    label: str


def _row(line: str, place: str) -> Row:
    try:
        found = msgspec.json.decode(line, type=_Line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigError(f"{place}: it is no row with messages and label: {error}", param="examples_path") from None
    return Row(found.messages, found.label, place)


def _decides(registry: Registry) -> tuple[object, ...]:
    entry = registry.entry_specialist
    return (entry.revision, entry.identity, *(item.card for item in registry.specialists))


def _waiting(entry: Entry, revision: str) -> Installed:
    item = entry.find(revision) if revision else state.newest(entry)
    if item.state in ("live", "retired"):
        message = f"revision {item.revision} is {item.state}; only one that waits for its promotion is checked"
        raise Conflict(message, param="revision", code="wrong_state")
    return item


def _check_rows(plan: _Plan, given: Sequence[Row]) -> None:
    """Raise `BadRequest` where rows cannot be used or there are too few or too many."""
    label, new = plan.key.label, plan.before.get(plan.key.label) is None
    if len(plan.rows) > MAX_ROWS:
        message = f"there are {len(plan.rows)} rows; at most {MAX_ROWS} can be checked at once"
        raise BadRequest(message, param="rows", code="too_many_rows")
    for number, row in enumerate(plan.rows):
        if fault := _fault(row, plan):
            raise BadRequest(f"{row.place or f'rows[{number}]'}: {fault}", param="rows", code="bad_row")
    if plan.alike:
        return
    if new and not any(row.label == label for row in given):
        message = f"there are no examples of {label}; give requests that it should get, with --examples"
        raise BadRequest(message, param="rows", code="no_examples")
    if not any(plan.before.get(row.label) for row in plan.rows):
        remedy = "give some with --data, or name a file in [mol.route] examples_path"
        raise BadRequest(f"there are no rows of the other labels; {remedy}", param="rows", code="no_rows")


def _fault(row: Row, plan: _Plan) -> str:
    if not 1 <= len(row.messages) <= MAX_MESSAGES:
        return f"it has {len(row.messages)} messages; 1 to {MAX_MESSAGES} are needed"
    last = row.messages[-1]
    if last.get("role") != "user" or not isinstance(last.get("content"), str) or not last["content"].strip():
        return "its last message must be the user's request, with text as its content"
    if any(len(text) > MAX_TEXT for message in row.messages if isinstance(text := message.get("content"), str)):
        return f"a message is longer than {MAX_TEXT} characters"
    unknown = {row.label} - set(plan.after.labels) | labels_in(row.messages, plan.before.entry) - set(
        plan.before.labels
    )
    if unknown:
        known = ", ".join(plan.after.labels)
        return f"the label {shown(min(unknown))!r} is not in force; there are {known}"
    return ""
