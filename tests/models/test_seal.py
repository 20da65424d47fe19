"""The hash of a file is remembered."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from macaron.models.files import seal, sealed_hash


def test_many_may_remember_the_hash_of_a_file_at_once(tmp_path: Path) -> None:
    weights, place = tmp_path / "m.gguf", tmp_path / "m.gguf.json"
    weights.write_bytes(b"weights")
    found = hashlib.sha256(b"weights").hexdigest()
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(seal, weights, place, found) for _ in range(400)]:
            done.result()
    assert sealed_hash(weights, place) == found
    assert {path.name for path in tmp_path.iterdir()} == {"m.gguf", "m.gguf.json"}
