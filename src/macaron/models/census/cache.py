"""The size of the KV cache a token, from what `config.json` or a GGUF file says of attention.

Grouped queries: every layer keeps a key and a value for each head of keys and values. Multi-head latent attention: it
keeps one latent and one rotary key for all heads. Layers without attention keep a state that does not grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

_BYTES: Mapping[str, int] = {"float32": 4, "float16": 2, "bfloat16": 2, "F16": 2}
_MAX_SIZE = 10_000_000
_MAX_LAYERS = 100_000

# Layers that share, compress or replace the cache, each in a way of its own.
_OTHER_CACHES = (
    "hybrid_override_pattern", "attn_layer_period", "attn_layer_indices", "layers_block_type", "block_types",
    "block_configs", "full_attn_idxs", "linear_attn_config", "mamba_d_state", "mamba_d_ssm", "ssm_cfg", "state_size",
    "num_kv_shared_layers", "global_head_dim", "num_global_key_value_heads", "cross_attention_layers",
    "compress_ratios", "multi_query", "num_kv_heads", "is_encoder_decoder", "attention_chunk_size", "attn_type_list",
    "hybrid_layer_pattern", "swa_num_key_value_heads",
)  # fmt: skip
_OTHER_GGUF_CACHES = ("attention.shared_kv_layers", "attention.key_length_swa", "attention.value_length_swa")


class KvCache(Struct, frozen=True):
    """What one token of context takes.

    Attributes:
        values: cached values a token, all layers together; None where it is not known.
        dtype: of the cache, as an engine keeps it unless told otherwise.
        form: `MHA`, `GQA`, `MQA` or `MLA`.
        detail: how the number comes about.
        unknown: why a number is None, and how it can be known.
    """

    values: int | None = None
    bytes: int | None = None
    dtype: str = ""
    form: str = ""
    detail: str = ""
    unknown: str = ""
    notes: tuple[str, ...] = ()


class _Unclear(Exception):
    """The reason why the size cannot be told."""


class _Layers(NamedTuple):
    """The number of layers that cache every token."""

    number: int
    notes: tuple[str, ...] = ()


def cache_of_config(table: Mapping[str, Any]) -> KvCache:
    """From the configuration of a model in the format of transformers."""
    nested = table.get("text_config")
    text: Mapping[str, Any] = nested if isinstance(nested, dict) else table
    try:
        for name in _OTHER_CACHES:
            if text.get(name):
                raise _Unclear(f"config.json has {name}, a cache whose size is not known here; ask the engine")
        layers = _config_layers(text)
        found = _latent(text, layers) if text.get("kv_lora_rank") else _heads(text, layers)
    except _Unclear as error:
        return KvCache(unknown=str(error))
    return _with_dtype(found, table, text)


def cache_of_gguf(pairs: Mapping[str, Any]) -> KvCache:
    """From the metadata of a GGUF file. llama.cpp keeps the cache in F16 unless told otherwise."""
    prefix = f"{pairs.get('general.architecture', '')}."
    own = {name.removeprefix(prefix): value for name, value in pairs.items() if name.startswith(prefix)}
    try:
        found = _gguf_cache(own)
    except _Unclear as error:
        return KvCache(unknown=str(error))
    return _sized(found, "F16")


def _config_layers(text: Mapping[str, Any]) -> _Layers:
    layers = _whole(text, "num_hidden_layers", most=_MAX_LAYERS)
    kinds, interval, window = (text.get(name) for name in ("layer_types", "full_attention_interval", "sliding_window"))
    if kinds:
        return _typed_layers(kinds, layers, window)
    if interval:
        return _every(_whole(text, "full_attention_interval"), layers)
    if window and text.get("use_sliding_window", True):
        return _Layers(layers, (_windowed(window),))
    return _Layers(layers)


def _typed_layers(kinds: Any, layers: int, window: Any) -> _Layers:
    if not isinstance(kinds, list) or len(kinds) != layers:
        raise _Unclear(f"config.json's layer_types is no list of its {layers} layers; correct it")
    others = [kind for kind in kinds if kind not in ("full_attention", "sliding_attention", "linear_attention")]
    if others:
        raise _Unclear(f"config.json has layers of type {str(others[0])[:40]!r}, whose cache is not known here")
    constant, sliding = kinds.count("linear_attention"), kinds.count("sliding_attention")
    notes = [_constant(constant, layers)] if constant else []
    if sliding:
        notes.append(f"{sliding} of {layers} layers have a sliding window. {_windowed(window)}")
    return _Layers(layers - constant, tuple(notes))


def _every(interval: int, layers: int) -> _Layers:
    count = layers // interval
    return _Layers(count, (_constant(layers - count, layers),) if count < layers else ())


def _windowed(window: Any) -> str:
    size = f"{window} tokens" if isinstance(window, int) else "tokens"
    return f"Layers with a sliding window keep no more than its last {size}; they are counted as if they kept all."


def _constant(number: int, layers: int) -> str:
    return f"{number} of {layers} layers keep a state that does not grow with the context; it is not counted."


def _latent(text: Mapping[str, Any], layers: _Layers) -> KvCache:
    rank, rotary = _whole(text, "kv_lora_rank"), _whole(text, "qk_rope_head_dim")
    notes = layers.notes
    if text.get("index_head_dim"):
        notes = (*notes, "The sparse attention's index keys, in a type the engine chooses, are not counted.")
    return _latent_cache(layers.number, rank, rotary, notes)


def _latent_cache(layers: int, rank: int, rotary: int, notes: tuple[str, ...] = ()) -> KvCache:
    detail = f"{layers} layers × ({rank} latent + {rotary} rotary key)"
    note = "An engine that caches every head instead of the latent takes more."
    return KvCache(values=layers * (rank + rotary), form="MLA", detail=detail, notes=(*notes, note))


def _heads(text: Mapping[str, Any], layers: _Layers) -> KvCache:
    heads = _whole(text, "num_attention_heads")
    shared = heads if text.get("num_key_value_heads") is None else _whole(text, "num_key_value_heads")
    key = _whole(text, "head_dim") if text.get("head_dim") is not None else _share(text, "hidden_size", heads)
    value = key if text.get("v_head_dim") is None else _whole(text, "v_head_dim")
    return _head_cache(layers.number, heads, shared, (key, value), layers.notes)


def _head_cache(layers: int, heads: int, shared: int, widths: tuple[int, int], notes: tuple[str, ...] = ()) -> KvCache:
    form = "MHA" if shared == heads else "MQA" if shared == 1 else "GQA"
    detail = f"{layers} layers × {shared} of {heads} heads × ({widths[0]} key + {widths[1]} value)"
    return KvCache(values=layers * shared * sum(widths), form=form, detail=detail, notes=notes)


def _gguf_cache(own: Mapping[str, Any]) -> KvCache:
    for name in _OTHER_GGUF_CACHES:
        if own.get(name):
            raise _Unclear(f"the file has {name}, a cache whose size is not known here; ask the engine")
    # Layers that only draft tokens come last and have no cache of their own here.
    drafting = _whole(own, "nextn_predict_layers", most=_MAX_LAYERS) if own.get("nextn_predict_layers") else 0
    layers = max(_whole(own, "block_count", most=_MAX_LAYERS) - drafting, 0)
    notes = (_windowed(own["attention.sliding_window"]),) if own.get("attention.sliding_window") else ()
    if own.get("attention.kv_lora_rank"):
        rank, rotary = _whole(own, "attention.kv_lora_rank"), _whole(own, "rope.dimension_count")
        return _latent_cache(layers, rank, rotary, notes)
    heads = _whole(own, "attention.head_count")
    width = _share(own, "embedding_length", heads) if "attention.key_length" not in own else 0
    key = width or _whole(own, "attention.key_length")
    value = _whole(own, "attention.value_length") if "attention.value_length" in own else width or key
    shared = own.get("attention.head_count_kv", heads)
    if isinstance(shared, list):
        return _uneven(shared, layers, (key, value), notes)
    if any(name.startswith("ssm.") for name in own):
        grown = _every(_whole(own, "full_attention_interval"), layers)
        layers, notes = grown.number, (*notes, *grown.notes)
    shared = _whole({"attention.head_count_kv": shared}, "attention.head_count_kv")
    return _head_cache(layers, heads, shared, (key, value), notes)


def _uneven(shared: list[Any], layers: int, widths: tuple[int, int], notes: tuple[str, ...]) -> KvCache:
    counts = [count for count in shared[:layers] if isinstance(count, int) and 0 <= count <= _MAX_SIZE]
    if len(counts) != layers:
        raise _Unclear("attention.head_count_kv is no list of a number for each layer")
    detail = f"{sum(counts)} heads in {layers} layers × ({widths[0]} key + {widths[1]} value)"
    return KvCache(values=sum(counts) * sum(widths), form="GQA", detail=detail, notes=notes)


def _with_dtype(found: KvCache, table: Mapping[str, Any], text: Mapping[str, Any]) -> KvCache:
    quantised = table.get("quantization_config")
    if isinstance(quantised, dict) and quantised.get("kv_cache_scheme"):
        return _sized(found, "", "config.json gives the cache a type of its own (kv_cache_scheme); ask the engine")
    names = [part.get(name) for part in (text, table) for name in ("dtype", "torch_dtype")]
    dtype = next((name for name in names if isinstance(name, str)), "")
    return _sized(found, dtype.removeprefix("torch."), "config.json names no dtype of 16 or 32 bits for the cache")


def _sized(found: KvCache, dtype: str, unknown: str = "") -> KvCache:
    width = _BYTES.get(dtype)
    known = found.values is not None and width is not None
    size = found.values * width if found.values is not None and width is not None else None
    dtype = dtype if known else ""
    return KvCache(found.values, size, dtype, found.form, found.detail, "" if known else unknown, found.notes)


def _whole(table: Mapping[str, Any], name: str, most: int = _MAX_SIZE) -> int:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        shown = "missing" if value is None else f"{str(value)[:40]!r}, no number from 1 to {most}"
        raise _Unclear(f"{name} is {shown}")
    return value


def _share(table: Mapping[str, Any], name: str, heads: int) -> int:
    width, rest = divmod(_whole(table, name), heads)
    if rest:
        raise _Unclear(f"{name} is no multiple of the {heads} heads and the width of a head is not given")
    return width
