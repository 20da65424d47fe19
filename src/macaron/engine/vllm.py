"""The engine that vLLM is: adapters are models, labels are structured outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from macaron.engine.base import Capabilities, ChatMessage, HopRequest
from macaron.engine.dialect import encode_body
from macaron.engine.http import JSON, HttpEngine, labels_after
from macaron.errors import ContextOverflow, MacaronError

EXTRA_OPTIONS: Final = frozenset(
    {
        "top_k",
        "min_p",
        "repetition_penalty",
        "length_penalty",
        "min_tokens",
        "stop_token_ids",
        "include_stop_str_in_output",
        "ignore_eos",
        "skip_special_tokens",
        "bad_words",
        "structured_outputs",
    }
)
ANSWER_ROOM: Final = ("max_tokens", "max_completion_tokens")
# Tokens that a template may add and the request's bytes do not show: its default system text, its words about tools.
TEMPLATE_ROOM: Final = 2048
COUNT_TIMEOUT: Final = 10.0
_RUNTIME_REMEDY: Final = "start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"


class _Counted(Struct):
    count: int


class VllmEngine(HttpEngine):
    """vLLM's OpenAI-compatible server, with `--enable-lora` where adapters are used."""

    @property
    def kind(self) -> str:
        """See `Engine.kind`."""
        return "vllm"

    @property
    def capabilities(self) -> Capabilities:
        """See `Engine.capabilities`."""
        return Capabilities(context_length=self._context_length, extra_options=EXTRA_OPTIONS)

    async def count_tokens(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> int | None:
        """See `Engine.count_tokens`. The server counts text only: an image counts as its place holder."""
        messages, options = self._special.neutralise_body(messages, options)
        rendered = {key: options[key] for key in ("tools", "chat_template_kwargs") if key in options}
        body = encode_body({"model": self._base_model, "messages": messages, **rendered})
        try:
            reply = await self._link.request("POST", "/tokenize", body, JSON, timeout=COUNT_TIMEOUT)
            return msgspec.json.decode(reply.body, type=_Counted).count if reply.status == 200 else None
        except (MacaronError, msgspec.DecodeError, RecursionError):
            return None

    async def load_adapter(self, name: str, path: str) -> None:
        """See `Pluggable.load_adapter`."""
        await self._adapter_call("/v1/load_lora_adapter", {"lora_name": name, "lora_path": path}, _RUNTIME_REMEDY)

    async def unload_adapter(self, name: str) -> None:
        """See `Pluggable.unload_adapter`."""
        await self._adapter_call("/v1/unload_lora_adapter", {"lora_name": name}, _RUNTIME_REMEDY)

    def _address(self, hop: HopRequest) -> dict[str, Any]:
        salt = {"cache_salt": hop.tenant} if hop.tenant else {}
        return {"model": hop.adapter or self._base_model, **salt}

    def _constraint(self, hop: HopRequest) -> dict[str, Any]:
        going_on = {"continue_final_message": True, "add_generation_prompt": False} if hop.prefill else {}
        return {"structured_outputs": {"choice": labels_after(hop.prefill, hop.choices)}, **going_on}

    def _sampled_fields(self) -> dict[str, Any]:
        return {"return_token_ids": True, "logprobs": True}

    async def _answer_body(self, hop: HopRequest) -> bytes:
        """The body with an answer's room that fits: vLLM refuses a larger one, and clients ask for very large ones."""
        body = self._render(hop, hop.options, self._answer_fields(hop))
        asked = {key: hop.options[key] for key in ANSWER_ROOM if isinstance(hop.options.get(key), int)}
        context = self._context_length
        if not asked or context is None or self._surely_fits(hop, len(body), max(asked.values()), context):
            return body
        prompt = await self.count_tokens(hop.messages, hop.options)
        if prompt is None:
            return body
        if prompt >= context:
            raise ContextOverflow(
                f"The request does not fit the model's maximum context length of {context} tokens; it needs {prompt}. "
                "Shorten it.",
                param="messages",
            )
        room = {key: min(value, context - prompt) for key, value in asked.items()}
        return self._render(hop, {**hop.options, **room}, self._answer_fields(hop))

    def _surely_fits(self, hop: HopRequest, size: int, asked: int, context: int) -> bool:
        """A token is at least one byte, except those of media, which a short address may stand for."""
        return size + TEMPLATE_ROOM + asked <= context and not any(map(_has_media, hop.messages))


def _has_media(message: ChatMessage) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(isinstance(part, dict) and "text" not in part for part in content)
