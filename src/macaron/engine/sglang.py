"""The engine that SGLang is: an adapter is a field beside the base's name, labels are a regular expression."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from macaron.engine.base import Capabilities, HopRequest
from macaron.engine.http import HttpEngine, labels_after
from macaron.engine.link.base import Link
from macaron.engine.special import SpecialTokens
from macaron.errors import ConfigError, EngineError

EXTRA_OPTIONS: Final = frozenset(
    {
        "top_k",
        "min_p",
        "repetition_penalty",
        "min_tokens",
        "stop_token_ids",
        "ignore_eos",
        "skip_special_tokens",
        "regex",
        "ebnf",
    }
)


class _Changed(Struct):
    success: bool = False
    error_message: str | None = ""


class SglangEngine(HttpEngine):
    """SGLang's OpenAI-compatible server, with `--lora-paths NAME=PATH` where adapters are used.

    An adapter is addressed by `lora_path`, which every version reads: `base:adapter` as the model is only read by those
    from 0.5.4 on.

    Raises:
        ConfigError: the base's name has a colon, behind which SGLang would look for an adapter.
    """

    def __init__(
        self, link: Link, *, base_model: str, special: SpecialTokens, context_length: int | None = None
    ) -> None:
        if ":" in base_model:
            raise ConfigError(
                f"{base_model!r} has a colon, behind which SGLang looks for an adapter's name; start the server with "
                "another --served-model-name.",
                param="engine.base_model",
            )
        super().__init__(link, base_model=base_model, special=special, context_length=context_length)

    @property
    def kind(self) -> str:
        """See `Engine.kind`."""
        return "sglang"

    @property
    def capabilities(self) -> Capabilities:
        """See `Engine.capabilities`."""
        return Capabilities(context_length=self._context_length, extra_options=EXTRA_OPTIONS)

    async def load_adapter(self, name: str, path: str) -> None:
        """See `Pluggable.load_adapter`."""
        await self._changed("/load_lora_adapter", {"lora_name": name, "lora_path": path})

    async def unload_adapter(self, name: str) -> None:
        """See `Pluggable.unload_adapter`."""
        await self._changed("/unload_lora_adapter", {"lora_name": name})

    async def _changed(self, path: str, body: dict[str, str]) -> None:
        """One of the calls, which also answer 200 when they failed."""
        raw = await self._adapter_call(path, body, "start SGLang with --enable-lora, in a version that has it")
        try:
            said = msgspec.json.decode(raw, type=_Changed)
        except (msgspec.MsgspecError, RecursionError):
            said = _Changed(False, "its answer cannot be read")
        if not said.success:
            raise EngineError(f"The engine's {path} failed: {said.error_message}", code="adapter_call_failed")

    def _address(self, hop: HopRequest) -> dict[str, Any]:
        adapter = {"lora_path": hop.adapter} if hop.adapter else {}
        salt = {"cache_salt": hop.tenant} if hop.tenant else {}
        return {"model": self._base_model, **adapter, **salt}

    def _constraint(self, hop: HopRequest) -> dict[str, Any]:
        going_on = {"continue_final_message": True} if hop.prefill else {}
        return {"regex": f"({'|'.join(map(_literal, labels_after(hop.prefill, hop.choices)))})", **going_on}


def _literal(label: str) -> str:
    """Not every grammar backend knows an escaped hyphen, which needs no escape outside of a class."""
    return re.escape(label).replace(r"\-", "-")
