"""What the parent tells the engine child, as one line of JSON on its standard input."""

from __future__ import annotations

from msgspec import Struct

MAX_LINE_BYTES = 4_194_304


class LaunchParams(Struct, frozen=True, forbid_unknown_fields=True):
    """How to start the engine.

    Attributes:
        weights: path of the base's GGUF file.
        port: on the loopback interface, held free by the parent.
        api_key: required on every request but `/health`.
        adapters: paths of LoRA GGUF files; the position is the adapter's id in the engine.
        slots: sequences with their own KV cache.
        slot_context: tokens a slot holds.
        batch: prompt tokens evaluated at once; a cancelled prompt stops between two batches.
        threads: 0 for one a core.
        chat_template: Jinja source, empty for the template inside the weights.
    """

    weights: str
    port: int
    api_key: str
    adapters: tuple[str, ...] = ()
    slots: int = 2
    slot_context: int = 8192
    batch: int = 256
    threads: int = 0
    chat_template: str = ""
