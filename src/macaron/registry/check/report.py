"""What a check finds: findings with their remedies, and the report that holds all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

Severity = Literal["error", "warning", "note"]

MAX_SHOWN = 160
MAX_FINDINGS = 200
EXAMPLES = 3
MAX_BYTES = 34_359_738_368


class Finding(Struct, frozen=True):
    """One thing that a check found.

    Attributes:
        severity: an `error` forbids registration, a `warning` is for a person to weigh, a `note` only says what is so.
        code: stable machine-readable reason.
        field: the file, key or tensor it is about.
        value: what stands there, clipped and printable; empty where nothing does.
        message: one sentence: what is wrong, or so.
        remedy: what to do; empty for a note that asks for nothing.
    """

    severity: Severity
    code: str
    field: str
    value: str
    message: str
    remedy: str


class Limits(Struct, frozen=True):
    """What the engine accepts.

    Attributes:
        max_rank: ranks above are refused; None where the engine has no limit.
        usual_rank: the engine's limit unless it was started with another; a higher rank is a warning.
        max_bytes: of the weights file.
    """

    max_rank: int | None = None
    usual_rank: int | None = None
    max_bytes: int = MAX_BYTES


class Provenance(Struct, frozen=True):
    """Where an adapter comes from, by its `run.json`: the run, its parent, when it began, the base it was trained on,
    and the SHA-256 of the manifest of each data set."""

    run: str
    parent: str
    created: str
    base_fingerprint: str
    data: tuple[str, ...]


class Report(Struct, frozen=True):
    """Everything that is known of an adapter after a check.

    Attributes:
        findings: errors first.
        revision: `sha256:<64 hex>` of exactly the bytes that were checked; empty where they could not all be read.
        rank, alpha: by its configuration, None where that cannot be read.
        targets: last names of the adapted modules, sorted.
        values: numbers in all of its tensors together.
        dtype: of the tensors; several are joined with `+`.
        base_fingerprint: `sha256:<hex>` of the base it was checked against, or the sample's `sample1:<hex>` where the
            former is not known; empty without a base.
        licence: as it states it, empty where it does not.
        provenance: None where it does not say.
    """

    findings: tuple[Finding, ...]
    revision: str = ""
    rank: int | None = None
    alpha: float | None = None
    targets: tuple[str, ...] = ()
    values: int = 0
    dtype: str = ""
    base_fingerprint: str = ""
    licence: str = ""
    provenance: Provenance | None = None

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return all(item.severity != "error" for item in self.findings)

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(item.severity == severity for item in self.findings)


class Refused(Exception):
    """A part cannot be read at all; `finding` says why. It never leaves this package."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Fault(NamedTuple):
    """Why some of many names are wrong; names with the same fault become one finding."""

    code: str
    message: str
    remedy: str
    severity: Severity = "error"


def error(code: str, field: str, value: object, message: str, remedy: str) -> Finding:
    """A finding that forbids registration."""
    return Finding("error", code, shown(field), shown(value), message, remedy)


def warning(code: str, field: str, value: object, message: str, remedy: str) -> Finding:
    """A finding for a person to weigh."""
    return Finding("warning", code, shown(field), shown(value), message, remedy)


def note(code: str, field: str, value: object, message: str, remedy: str = "") -> Finding:
    """A finding that only says what is so."""
    return Finding("note", code, shown(field), shown(value), message, remedy)


def grouped(field: str, faults: Iterable[tuple[str, Fault]]) -> list[Finding]:
    """One finding a fault, with how many names have it and the first of them, so that a wrong prefix is one line and
    not four hundred."""
    names: dict[Fault, list[str]] = {}
    for name, fault in faults:
        names.setdefault(fault, []).append(name)
    return [
        Finding(fault.severity, fault.code, shown(field), _listed(found), fault.message, fault.remedy)
        for fault, found in names.items()
    ]


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then notes; each in the order they were found, `MAX_FINDINGS` in all."""
    rank = {"error": 0, "warning": 1, "note": 2}
    ordered = sorted(findings, key=lambda item: rank[item.severity])
    if len(ordered) > MAX_FINDINGS:
        more = note("more_findings", "folder", len(ordered) - MAX_FINDINGS, "There is more that is not listed.")
        ordered = [*ordered[:MAX_FINDINGS], more]
    return tuple(ordered)


def shown(value: object, limit: int = MAX_SHOWN) -> str:
    """A value of a stranger's as printable text of bounded length: nothing in it steers a terminal or breaks JSON."""
    text = value if isinstance(value, str) else str(value)
    clipped = text[:limit] + ("…" if len(text) > limit else "")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in clipped)


def sentence(reason: str) -> str:
    """A part of another error's message as a message of its own."""
    return f"{reason[:1].upper()}{reason[1:]}."


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(shown(name) for name in names[:EXAMPLES])
    return first if len(names) <= EXAMPLES else f"{len(names)}: {first}, …"
