"""A base so small that it trains in seconds, a profile that stands on it, and data sets for it."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import macaron.profiles
from macaron.hcp import load
from macaron.train.base import locate_base
from macaron.train.data.rows import AnyRow, PreferenceRow, RouteRow, SftRow

WORDS = [
    *("please", "write", "fix", "the", "code", "plan", "a", "trip", "book", "hotel", "weather"),
    *("explain", "why", "sort", "list", "function", "card", "form", "widget", "show", "price"),
]


class Tiny(NamedTuple):
    """A profile's document and the cache with its base."""

    profile: str
    cache: Path


def make_tiny(folder: Path, context: str = "labels") -> Tiny:
    """Copy `demi` onto a random Llama of two layers with a tokenizer of its own."""
    profile = folder / "profile"
    shutil.copytree(Path(macaron.profiles.__file__).parent / "demi", profile)
    weights = profile / "weights.bin"
    weights.write_bytes(b"stands for the weights")
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    document = (profile / "profile.toml").read_text()
    head, _, _ = document.partition("[engine.weights]")
    lines = [line for line in head.splitlines() if not line.startswith(("base_fingerprint", "route_context"))]
    lines = [f'{line}\nroute_context = "{context}"' if line == "[mol]" else line for line in lines]
    section = f'[engine.weights]\nfile = "weights.bin"\npath = "weights.bin"\nsha256 = "{digest}"\n'
    (profile / "profile.toml").write_text("\n".join(lines) + "\n" + section)
    cache = folder / "bases"
    base = locate_base(load(profile / "profile.toml"), cache_dir=cache)
    tokenizer = _tokenizer(document)
    tokenizer.save_pretrained(base.folder)
    _model(len(tokenizer)).save_pretrained(base.folder)
    return Tiny(str(profile / "profile.toml"), cache)


def _tokenizer(corpus: str) -> Any:
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    built = Tokenizer(BPE())
    built.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    built.decoder = Decoder()
    trainer = BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    built.train_from_iterator([corpus, " ".join(WORDS)], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=built, eos_token="<|im_end|>", pad_token="<|endoftext|>")


def _model(vocabulary: int) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            initializer_range=0.1,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        )
    )


def text(choice: random.Random, least: int, most: int) -> str:
    """Some words."""
    return " ".join(choice.choice(WORDS) for _ in range(choice.randint(least, most)))


def sft_rows(count: int, seed: int = 0, name: str = "s") -> list[SftRow]:
    """Conversations of one turn."""
    choice = random.Random(f"{name}{seed}")
    return [
        SftRow(f"{name}{at}", "made", messages=(_said("user", choice, 3, 12), _said("assistant", choice, 2, 9)))
        for at in range(count)
    ]


def route_rows(count: int, seed: int = 0, name: str = "r") -> list[RouteRow]:
    """Requests, every second one after an answer of L1."""
    choice = random.Random(f"{name}{seed}")
    past = (_said("user", choice, 3, 5), {**_said("assistant", choice, 4, 8), "label": "L1"})
    return [
        RouteRow(
            f"{name}{at}",
            "made",
            messages=(*(past if at % 2 else ()), _said("user", choice, 3, 12)),
            label=f"L{choice.randrange(4)}",
        )
        for at in range(count)
    ]


def preference_rows(count: int, name: str = "p") -> list[PreferenceRow]:
    """Pairs of answers."""
    choice = random.Random(name)
    return [
        PreferenceRow(
            f"{name}{at}",
            "made",
            prompt=(_said("user", choice, 3, 9),),
            chosen=(_said("assistant", choice, 3, 6),),
            rejected=(_said("assistant", choice, 7, 9),),
        )
        for at in range(count)
    ]


def write_set(folder: Path, train: Sequence[AnyRow], dev: Sequence[AnyRow] = ()) -> str:
    """A data set; returns its path."""
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    for part, rows in (("train", train), ("dev", dev)):
        (folder / f"{part}.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return str(folder)


def _said(role: str, choice: random.Random, least: int, most: int) -> dict[str, Any]:
    return {"role": role, "content": text(choice, least, most)}
