"""The specialists a service knows: label, revision, card and state."""

from __future__ import annotations

from macaron.registry.cards import Registry, Specialist, State, registry_from

__all__ = ["Registry", "Specialist", "State", "registry_from"]
