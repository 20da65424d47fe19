"""The check of one adapter: folder, options, names and shapes, numbers, base, licence and provenance."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from macaron.errors import ConfigError
from macaron.models.peft import CONFIG_FILE, MAX_CONFIG_BYTES, WEIGHTS_FILE, AdapterConfig
from macaron.models.safetensors import TensorFile, UnusableTensors, read_header
from macaron.registry.check.base import BaseFingerprint, compatible, trained_on
from macaron.registry.check.config import read_config
from macaron.registry.check.folder import Folder, missing, open_folder
from macaron.registry.check.keys import match_keys, targets_of
from macaron.registry.check.origin import read_licence, read_provenance, same_revision
from macaron.registry.check.report import (
    Finding,
    Limits,
    Provenance,
    Refused,
    Report,
    error,
    in_order,
    note,
    sentence,
    shown,
)
from macaron.registry.check.values import dtype_findings, scan, value_findings
from macaron.registry.revision import folder_revision


class _Weights(NamedTuple):
    file: TensorFile
    sha256: str


class _Checked(Struct):
    """What is known so far."""

    findings: list[Finding] = field(default_factory=list)
    config: AdapterConfig | None = None
    config_sha256: str = ""
    weights: _Weights | None = None
    licence: str = ""
    provenance: Provenance | None = None
    revision: str = ""


def check_adapter(folder: Path, base: BaseFingerprint | None, limits: Limits | None = None) -> Report:
    """Find everything that is wrong with the adapter in `folder`, and say what it is.

    Whatever lies there is a stranger's: nothing in it is executed, followed or trusted, memory is bounded, and nothing
    in it raises.

    Args:
        base: what it must fit; None leaves names and shapes unmatched, which is a note.
        limits: of the engine; none by default.
    """
    checked = _Checked()
    try:
        with open_folder(folder) as opened:
            _check(opened, base, limits or Limits(), checked)
    except Refused as problem:
        checked.findings.append(problem.finding)
    except OSError as problem:
        reason = f"It cannot be read: {problem.strerror}."
        checked.findings.append(
            error("unreadable", "folder", "", reason, "See that the disk and its rights are in order.")
        )
    return _report(checked, base)


def _check(folder: Folder, base: BaseFingerprint | None, limits: Limits, checked: _Checked) -> None:
    names, findings = folder.names()
    checked.findings += [*findings, *missing(names)]
    if CONFIG_FILE in names:
        _check_config(folder, limits, checked)
    if WEIGHTS_FILE in names:
        _check_weights(folder, base, limits, checked)
    checked.provenance, recorded, findings = read_provenance(folder, names)
    checked.findings += findings
    checked.licence, findings = read_licence(folder, names, checked.weights.file.metadata if checked.weights else {})
    checked.findings += findings
    if checked.weights is not None and checked.config_sha256:
        checked.revision = folder_revision(checked.config_sha256, checked.weights.sha256)
        checked.findings += same_revision(checked.revision, recorded)
    checked.findings += _against(base, checked)


def _check_config(folder: Folder, limits: Limits, checked: _Checked) -> None:
    try:
        raw = folder.read(CONFIG_FILE, MAX_CONFIG_BYTES)
        checked.config_sha256 = hashlib.sha256(raw).hexdigest()
        checked.config, findings = read_config(raw, limits)
    except Refused as problem:
        findings = [problem.finding]
    checked.findings += findings


def _check_weights(folder: Folder, base: BaseFingerprint | None, limits: Limits, checked: _Checked) -> None:
    try:
        with folder.file(WEIGHTS_FILE) as (file, size):
            if size > limits.max_bytes:
                reason = f"It has more than the {limits.max_bytes} bytes that an adapter may have here."
                raise Refused(
                    error("too_large", WEIGHTS_FILE, size, reason, "Train with a lower rank, or save as F16.")
                )
            found = read_header(file, size, Path(WEIGHTS_FILE))
            checked.findings += dtype_findings(found.tensors.values(), WEIGHTS_FILE)
            checked.findings += match_keys(found.tensors.values(), checked.config, base, WEIGHTS_FILE)
            scanned = scan(file, found)
    except Refused as problem:
        checked.findings.append(problem.finding)
        return
    except ConfigError as problem:
        checked.findings.append(_unusable(problem))
        return
    checked.weights = _Weights(found, scanned.sha256)
    checked.findings += value_findings(scanned, WEIGHTS_FILE)


def _unusable(problem: ConfigError) -> Finding:
    if isinstance(problem, UnusableTensors):
        value, reason, remedy = problem.param or "", sentence(problem.reason), sentence(problem.remedy)
        return error(str(problem.code), WEIGHTS_FILE, value, reason, remedy)
    reason, remedy = "The file changed while it was read.", "Check it again when it is whole."
    return error("changed", WEIGHTS_FILE, "", reason, remedy)


def _against(base: BaseFingerprint | None, checked: _Checked) -> list[Finding]:
    if base is None:
        reason = "The base's files are not here, so names and shapes were not compared with it."
        return [note("base_unknown", "base", "", reason, "Check it where the base's weights are.")]
    findings = compatible(checked.config, base) if checked.config is not None else []
    if not base.modules:
        reason = (
            "The base's files are not here, or not of a known layout, so names and shapes were not compared with it."
        )
        findings.append(note("base_unknown", "base", base.architecture, reason))
    return [*findings, *trained_on(checked.provenance.base_fingerprint if checked.provenance else "", base)]


def _report(checked: _Checked, base: BaseFingerprint | None) -> Report:
    tensors = checked.weights.file.tensors.values() if checked.weights else ()
    config = checked.config
    return Report(
        findings=in_order(checked.findings),
        revision=checked.revision,
        rank=config.rank or None if config else None,
        alpha=config.alpha or None if config else None,
        targets=tuple(shown(name) for name in targets_of(tensors)),
        values=sum(tensor.values for tensor in tensors),
        dtype="+".join(sorted({shown(tensor.dtype) for tensor in tensors})),
        base_fingerprint=base.identity if base else "",
        licence=checked.licence,
        provenance=checked.provenance,
    )
