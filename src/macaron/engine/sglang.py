"""The engine that SGLang is: an adapter is a field beside the base's name, labels are a regular expression."""

from __future__ import annotations

import re
from typing import Any, Final

from macaron.engine.base import Capabilities, HopRequest
from macaron.engine.http import HttpEngine, labels_after
from macaron.engine.link.base import Link
from macaron.engine.special import SpecialTokens
from macaron.errors import ConfigError

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
