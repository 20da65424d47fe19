"""Bounds of the document's texts and numbers. Whoever registers an adapter is a stranger to the service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from macaron.hcp.checks import LABEL
from macaron.registry.check.report import shown
from macaron.registry.desired.document import ADAPTER_REVISION, Card, Installed, Probed

MAX_NAME: Final = 80
MAX_LINE: Final = 600
MAX_IDENTITY: Final = 32_768
MAX_NOTE: Final = 1000
MAX_FIELD: Final = 256
MAX_REPLICA: Final = 128
MAX_REPLICAS: Final = 256
MAX_REVISIONS: Final = 64
MAX_ENTRIES: Final = 1024
MAX_BOUND: Final = 4096
MAX_BYTES: Final = 2**50
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Fault(NamedTuple):
    """A field that is out of its bounds: which, what stands there, and what may."""

    field: str
    value: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.field} is {self.value!r}; it must be {self.wanted}"


def key_faults(label: str, tenant: str) -> Iterator[Fault]:
    """What is wrong with the name of an entry."""
    if not LABEL.fullmatch(label):
        yield Fault("label", shown(label), "a capital letter and up to 31 letters, digits, _ or -")
    if tenant and not TENANT.fullmatch(tenant):
        yield Fault("tenant", shown(tenant), "the name of a key, or empty for everybody")


def card_faults(card: Card) -> Iterator[Fault]:
    """What is wrong with a card."""
    yield from _line("name", card.name, MAX_NAME, required=True)
    yield from _line("description", card.description, MAX_LINE, required=True)
    yield from _line("boundary", card.boundary, MAX_LINE)
    identity = card.identity
    if not identity.strip() or len(identity) > MAX_IDENTITY or _unusable(identity):
        yield Fault("identity", shown(identity, 40), f"a prompt of 1 to {MAX_IDENTITY} characters of text")


def installed_faults(item: Installed) -> Iterator[Fault]:
    """What is wrong with the facts of a revision."""
    if not ADAPTER_REVISION.fullmatch(item.revision):
        yield Fault("revision", shown(item.revision), "sha256: and 64 hexadecimal digits in lower case")
    if not 0 <= item.bytes <= MAX_BYTES:
        yield Fault("bytes", shown(item.bytes), f"0 to {MAX_BYTES}")
    if not 0 <= item.created < 1e12:
        yield Fault("created", shown(item.created), "a Unix time in seconds")
    for name, value in (("licence", item.licence), ("run", item.run)):
        yield from _line(name, value, MAX_FIELD)
    for name, value in (("note", item.note), ("withdrawn", item.withdrawn)):
        yield from _line(name, value, MAX_NOTE)
    if item.route_check is not None:
        for name in ("standing", "waived", "detail"):
            yield from _line(f"route_check.{name}", getattr(item.route_check, name), MAX_NOTE)
    if len(item.probed) > MAX_REPLICAS or len({probe.replica for probe in item.probed}) < len(item.probed):
        yield Fault("probed", shown(len(item.probed)), f"at most {MAX_REPLICAS} replicas, each there once")
    for probe in item.probed:
        yield from probe_faults(probe)
    if item.card is not None:
        yield from card_faults(item.card)


def probe_faults(probe: Probed) -> Iterator[Fault]:
    """What is wrong with a probe's record."""
    yield from _line("replica", probe.replica, MAX_REPLICA, required=True)
    if not (probe.mean is None or 0 <= probe.mean <= 1) or (probe.passed and probe.mean is None):
        yield Fault("probed.mean", shown(probe.mean), "0 to 1 where the probe passed")


def _line(field: str, value: str, longest: int, *, required: bool = False) -> Iterator[Fault]:
    if len(value) > longest or not value.isprintable() or (required and not value.strip()):
        yield Fault(field, shown(value, 40), f"{int(required)} to {longest} printable characters on one line")


def _unusable(text: str) -> bool:
    """Whether a text has characters that no prompt has: controls other than line ends and tabs, and half pairs."""
    return any((ord(char) < 32 and char not in "\n\t\r") or 0xD800 <= ord(char) < 0xE000 for char in text)
