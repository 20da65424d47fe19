"""Checking an adapter before it comes near an engine: every finding at once, each with its remedy."""

from __future__ import annotations

from macaron.registry.check.base import BaseFingerprint, Extent, compatible, sample_digest
from macaron.registry.check.check import check_adapter
from macaron.registry.check.probe import NO_EFFECT, Effect, Probe, effect_finding, effect_of, total_variation
from macaron.registry.check.report import Finding, Limits, Provenance, Report, Severity
from macaron.registry.check.safetensors_base import safetensors_fingerprint

__all__ = [
    "NO_EFFECT",
    "BaseFingerprint",
    "Effect",
    "Extent",
    "Finding",
    "Limits",
    "Probe",
    "Provenance",
    "Report",
    "Severity",
    "check_adapter",
    "compatible",
    "effect_finding",
    "effect_of",
    "safetensors_fingerprint",
    "sample_digest",
    "total_variation",
]
