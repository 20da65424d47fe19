"""Licence and provenance: what an adapter says about its terms, its run and its data."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from macaron.registry.check.folder import CARD_FILE, LICENCE_FILES, RUN_FILE, Folder
from macaron.registry.check.report import Finding, Provenance, Refused, error, shown, warning

MAX_RUN_BYTES = 4_194_304
MAX_CARD_BYTES = 4_194_304
MAX_FRONT_LINES = 400


class _Data(Struct):
    sha256: str = ""


class _Adapter(Struct):
    revision: str = ""


class _Run(Struct):
    id: str = ""
    status: str = ""
    parent: str = ""
    created: str = ""
    base_fingerprint: str = ""
    data: list[_Data] = []
    adapter: _Adapter | None = None


def read_provenance(folder: Folder, names: frozenset[str]) -> tuple[Provenance | None, str, list[Finding]]:
    """What `run.json` says, the revision that came out of its run (empty where it names none), and what is missing."""
    if RUN_FILE not in names:
        reason = "Nothing says from which data and by which run it was made."
        remedy = f"Keep the {RUN_FILE} that `macaron train` writes, or write one with id, created and data."
        return None, "", [warning("no_provenance", RUN_FILE, "", reason, remedy)]
    try:
        run = msgspec.json.decode(folder.read(RUN_FILE, MAX_RUN_BYTES), type=_Run)
    except Refused as problem:
        return None, "", [problem.finding]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OSError) as problem:
        reason = f"It is no record of a run: {shown(problem)}."
        remedy = "Copy it again from the run's folder, or remove it."
        return None, "", [warning("bad_provenance", RUN_FILE, "", reason, remedy)]
    made = Provenance(
        run=shown(run.id), parent=shown(run.parent), created=shown(run.created),
        base_fingerprint=shown(run.base_fingerprint), data=tuple(shown(item.sha256) for item in run.data),
    )  # fmt: skip
    return made, run.adapter.revision if run.adapter else "", list(_gaps(run))


def same_revision(revision: str, recorded: str) -> list[Finding]:
    """Whether the bytes are still those that came out of the run."""
    if not revision or not recorded or revision == recorded:
        return []
    reason = f"The adapter's bytes are {revision}: they are not those that came out of this run."
    remedy = f"Copy the adapter again, or remove the {RUN_FILE} of another one."
    return [error("other_revision", f"{RUN_FILE}: adapter.revision", recorded, reason, remedy)]


def read_licence(folder: Folder, names: frozenset[str], metadata: Mapping[str, str]) -> tuple[str, list[Finding]]:
    """The licence: of the card's front matter, of the weights' metadata, or a licence file's name."""
    stated = _front_matter(folder, names) or metadata.get("license", "") or metadata.get("licence", "")
    stated = stated or next((name for name in LICENCE_FILES if name in names), "")
    if stated:
        return shown(stated), []
    reason = "It states no licence, so nobody knows who may use it."
    remedy = f"Write `license: <SPDX name>` between two lines `---` at the top of its {CARD_FILE}."
    return "", [warning("no_licence", CARD_FILE, "", reason, remedy)]


def _gaps(run: _Run) -> list[Finding]:
    findings = []
    if run.status not in ("", "finished"):
        reason = "The run did not finish."
        findings.append(warning("unfinished_run", f"{RUN_FILE}: status", run.status, reason, "Resume it to its end."))
    if not run.data:
        reason = "It does not say on which data it was trained."
        findings.append(warning("no_data", f"{RUN_FILE}: data", "", reason, "Name the data sets with their SHA-256."))
    return findings


def _front_matter(folder: Folder, names: frozenset[str]) -> str:
    """The `license` of a card's front matter; a full YAML parser has no business with a stranger's file."""
    if CARD_FILE not in names:
        return ""
    try:
        lines = folder.read(CARD_FILE, MAX_CARD_BYTES).decode("utf-8", "replace").splitlines()
    except (Refused, OSError):
        return ""
    if not lines or lines[0].strip() != "---":
        return ""
    for line in lines[1:MAX_FRONT_LINES]:
        if line.strip() == "---":
            break
        name, _, value = line.partition(":")
        if name in ("license", "licence"):
            return value.strip().strip("'\"")
    return ""
