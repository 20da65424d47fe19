"""Rows that say the same as an earlier row: byte for byte, or nearly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from macaron.errors import ConfigError
from macaron.train.data.rows import AnyRow
from macaron.train.data.text import prompt_text, shingles

SHINGLE = 3
PERMUTATIONS = 128
BATCH = 4096
CACHED = 4096


def content_key(row: AnyRow) -> bytes:
    """Equal for rows with equal content, whatever their id, source, group and language."""
    content = msgspec.structs.replace(row, id="", source="", group="", language="")
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).digest()


class ExactDuplicates:
    """Remembers the content of rows."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def repeats(self, row: AnyRow) -> bool:
        """Whether a row with this content was asked about before."""
        key = content_key(row)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


def near_duplicates(rows: Sequence[AnyRow], threshold: float) -> Iterator[tuple[int, int]]:
    """The rows whose prompt nearly equals that of an earlier row which is not itself such a row.

    MinHash finds the candidates and the exact Jaccard similarity of their word triples decides, so that the rows that
    are left have no near-duplicates among those it finds: doing it again changes nothing.

    Yields:
        Index of the row, and of the earlier row it repeats.

    Raises:
        ConfigError: the packages for training are not installed.
    """
    try:
        # Importing it takes most of a second.
        from datasketch import MinHash, MinHashLSH
    except ImportError:
        reason = "finding near-duplicates needs datasketch: pip install 'macaron[train]'"
        raise ConfigError(f"{reason}, or set [dedup] enabled = false", param="dedup.enabled") from None

    # A false candidate costs only a comparison. Above 0.9 too few bands would be left.
    index = MinHashLSH(threshold=min(threshold, 0.9), num_perm=PERMUTATIONS, weights=(0.2, 0.8))
    text_of = lru_cache(CACHED)(lambda number: shingles(prompt_text(rows[number]), SHINGLE))
    blank = MinHash(num_perm=PERMUTATIONS)
    for number in range(len(rows)):
        text = text_of(number)
        if not text:
            continue
        sketch = blank.copy()
        for part in _batched([shingle.encode() for shingle in text], BATCH):
            sketch.update_batch(part)
        candidates = sorted(index.query(sketch))
        earlier = next((other for other in candidates if jaccard(text, text_of(other)) >= threshold), None)
        if earlier is None:
            index.insert(number, sketch)
        else:
            yield number, earlier


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Shared elements over all elements."""
    return len(first & second) / len(first | second)


def _batched(items: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    """Pieces of `size` items; a sketch takes a kilobyte of memory for each item of a piece."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
