"""Function-calling cases of the Berkeley Function-Calling Leaderboard, read from the unpacked `bfcl-eval` wheel.

Both training and evaluation read them here, so that both see one division into sides. The leaderboard repeats its
functions and questions across categories; what shares either is one group, and a group is never divided.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError

ANSWERED = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
"""Categories whose cases say which calls are right."""
UNANSWERABLE = ("irrelevance", "live_irrelevance")
"""Categories whose cases no tool fits."""
MULTI_CANDIDATE = ("multiple", "live_multiple")
"""Categories of one call among several tools."""

TEST_PERCENT = 35
# With this salt the group of 845 cases, most of them long, falls on the test side and the one of 433 on the other.
_SALT = "macaron-bfcl-19:"
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "any": None}
_KEPT = ("description", "enum", "default")


class BfclCase(Struct, frozen=True):
    """One request with its tools and the calls that are right.

    Attributes:
        id: the leaderboard's.
        messages: in the Chat Completions shape, a system message first where the case has one.
        functions: name, description and parameters of each tool; the parameters are JSON Schema.
        answers: the calls, each one name → parameter → acceptable values, where an empty string among them means that
            the parameter may be left out; values inside objects are lists of acceptable ones again. Empty where no
            tool fits.
        group: the id of the first case among all that share a function or a question with it, directly or through
            others.
    """

    id: str
    category: str
    messages: tuple[dict[str, Any], ...]
    functions: tuple[dict[str, Any], ...]
    answers: tuple[dict[str, dict[str, list[Any]]], ...]
    group: str


def load(folder: Path) -> list[BfclCase]:
    """All single-step cases under the wheel's `folder`, in the leaderboard's order.

    An unanswerable case that would join two groups is left out: the catch-all tools of that category would otherwise
    tie most of the leaderboard into one group.

    Raises:
        ConfigError: a file is missing or not what this release holds.
    """
    data = folder / "bfcl_eval" / "data"
    answered = [case for category in ANSWERED for case in _read(data, category, answered=True)]
    groups = _Groups()
    for case in answered:
        groups.join(case.id, _keys(case))
    free = []
    for category in UNANSWERABLE:
        for case in _read(data, category, answered=False):
            if groups.join_if_one(case.id, _keys(case)):
                free.append(case)
    return [msgspec.structs.replace(case, group=groups.first(case.id)) for case in (*answered, *free)]


def split_of(case: BfclCase) -> Literal["train", "test"]:
    """The side of the case's group, by a hash: cases on different sides share no function name and no question."""
    number = int.from_bytes(hashlib.sha256((_SALT + case.group).encode()).digest()[:8], "big")
    return "test" if number % 100 < TEST_PERCENT else "train"


def normalised_question(case: BfclCase) -> str:
    """What the user says, without case, punctuation and spacing."""
    said = " ".join(str(message["content"]) for message in case.messages if message["role"] == "user")
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", said).casefold()))


def json_schema(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The leaderboard's notation of a parameter as JSON Schema."""
    kind = raw.get("type", "any")
    named = _TYPES.get(kind, kind)
    schema: dict[str, Any] = {} if named is None else {"type": named}
    schema |= {key: raw[key] for key in _KEPT if key in raw}
    if isinstance(raw.get("properties"), dict):
        schema["properties"] = {name: json_schema(value) for name, value in raw["properties"].items()}
        schema["required"] = [name for name in raw.get("required", ()) if name in raw["properties"]]
    if isinstance(raw.get("items"), dict):
        schema["items"] = json_schema(raw["items"])
    return schema


def _read(data: Path, category: str, *, answered: bool) -> Iterator[BfclCase]:
    name = f"BFCL_v4_{category}.json"
    truths = {row["id"]: row["ground_truth"] for row in _lines(data / "possible_answer" / name)} if answered else {}
    for row in _lines(data / name):
        if answered and row["id"] not in truths:
            continue
        yield BfclCase(
            id=row["id"],
            category=category,
            messages=tuple(message for turn in row["question"] for message in turn),
            functions=tuple(
                {
                    "name": function["name"],
                    "description": function.get("description", ""),
                    "parameters": json_schema(function["parameters"]),
                }
                for function in row["function"]
            ),
            answers=tuple(truths.get(row["id"], ())),
            group="",
        )


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(
            b"[" + b",".join(path.read_bytes().strip().splitlines()) + b"]", type=list[dict[str, Any]]
        )
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"{path.name} of the bfcl-eval wheel cannot be read: {error}. Give the release that the recipe names.",
            param="source.package",
        ) from error


def _keys(case: BfclCase) -> list[str]:
    return ["q:" + normalised_question(case), *(f"f:{function['name']}" for function in case.functions)]


class _Groups:
    """Which cases hang together: a union-find over cases and what they share."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._first: dict[str, int] = {}
        self._cases: list[str] = []

    def join(self, case_id: str, keys: Iterable[str]) -> None:
        root = self._find("c:" + case_id)
        self._first[root] = len(self._cases)
        self._cases.append(case_id)
        for key in keys:
            other = self._find(key)
            if other == root:
                continue
            firsts = [self._first.pop(each) for each in (root, other) if each in self._first]
            self._parent[other] = root
            self._first[root] = min(firsts)

    def join_if_one(self, case_id: str, keys: list[str]) -> bool:
        roots = {self._find(key) for key in keys}
        if len({root for root in roots if root in self._first}) > 1:
            return False
        self.join(case_id, keys)
        return True

    def first(self, case_id: str) -> str:
        return self._cases[self._first[self._find("c:" + case_id)]]

    def _find(self, key: str) -> str:
        self._parent.setdefault(key, key)
        while self._parent[key] != key:
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key
