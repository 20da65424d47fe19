"""What the embedded engine's client has to know about the child it talks to."""

from __future__ import annotations

from msgspec import Struct

from macaron.engine.llamacpp.slots import slots_needed


class EngineConfig(Struct, frozen=True):
    """The child as it was launched.

    Attributes:
        origin, api_key: of `launch.EngineChild`.
        adapters: engine names in the order their files were given to the child; the position is the engine's id.
        registered: engine names of the adapters that came while the service ran; their ids follow those of `adapters`.
        specialists: the adapter of each specialist, None for one that is only a prompt.
        entry: the adapter that routes, None where the entry specialist is only a prompt.
        entry_label: of the entry specialist, by which an adapter that came for it is known.
        slots_per_adapter: conversations kept warm a specialist.
        slot_context: tokens a slot holds.
        batch_requests, batch_tokens: of one adapter's turn while others wait.
        special_tokens: the tokenizer's control tokens as text.
    """

    origin: str
    api_key: str
    adapters: tuple[str, ...] = ()
    specialists: tuple[str | None, ...] = (None,)
    entry: str | None = None
    slots_per_adapter: int = 1
    slot_context: int = 8192
    batch_requests: int = 8
    batch_tokens: int = 2048
    special_tokens: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    entry_label: str = "L0"

    @property
    def slots(self) -> int:
        """Slots the child must have been launched with."""
        return slots_needed(len(self.lanes), self.slots_per_adapter) + len(self.routers)

    @property
    def names(self) -> tuple[str, ...]:
        """All adapters; the position is the engine's id."""
        return (*self.adapters, *self.registered)

    @property
    def lanes(self) -> tuple[str | None, ...]:
        """The adapter of each specialist, and of each one registered, which has to be compared with the bare base."""
        base = (None,) if self.registered and None not in self.specialists else ()
        return (*self.specialists, *self.registered, *base)

    @property
    def routers(self) -> tuple[str, ...]:
        """Those registered that may route in the entry's place."""
        return tuple(name for name in self.registered if name.startswith(f"{self.entry_label}@"))
