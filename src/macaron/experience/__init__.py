"""Recorded turns: what a service keeps for training, where its contract says whose turns and on what consent.

The service writes (`Recorder`), commands and data builders read (`ExperienceFile`). The file is beside the store and of
another life: the store forgets conversations, experience is kept until it is too old, too much, or deleted.
"""

from __future__ import annotations

from macaron.experience.base import Consent, Reaction, ReactionKind, Record, Turn, Wanted
from macaron.experience.file import create, experience_path
from macaron.experience.read import ExperienceFile, SessionUse
from macaron.experience.recorder import Bounds, Counts, Recorder

__all__ = [
    "Bounds",
    "Consent",
    "Counts",
    "ExperienceFile",
    "Reaction",
    "ReactionKind",
    "Record",
    "Recorder",
    "SessionUse",
    "Turn",
    "Wanted",
    "create",
    "experience_path",
]
