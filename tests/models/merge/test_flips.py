"""Whatever byte of a header is wrong, the answer is a merge or one error of ours."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.models.merge import merge_gguf, merge_safetensors
from tests.models import peft_folder
from tests.models.merge.made import adapter_tensors, base_weights, write_folder, write_gguf_base

FLIPS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def flipped(raw: bytes, head: int, flips: list[tuple[float, int]]) -> bytes:
    changed = bytearray(raw)
    for place, value in flips:
        changed[int(place * head)] = value
    return bytes(changed)


def survives(merge: Callable[[Path], object], folder: Path) -> None:
    """The merge ends with everything or with nothing."""
    out = folder / "out"
    with suppress(ConfigError):
        merge(out)
        return
    assert not out.exists()
    assert not list(folder.glob(".out*"))


@pytest.mark.slow
@QUICK
@given(flips=FLIPS)
def test_a_base_in_gguf(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("flips")
    base = write_gguf_base(folder / "base.gguf", base_weights())
    adapter = peft_folder.write_folder(folder / "adapter", adapter_tensors())
    base.write_bytes(flipped(base.read_bytes(), 3000, flips))
    survives(lambda out: merge_gguf(base, adapter, out), folder)


@pytest.mark.slow
@QUICK
@given(flips=FLIPS)
def test_an_adapter(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("flips")
    base = write_folder(folder / "base", base_weights())
    adapter = peft_folder.write_folder(folder / "adapter", adapter_tensors())
    weights = adapter / "adapter_model.safetensors"
    weights.write_bytes(flipped(weights.read_bytes(), 3000, flips))
    survives(lambda out: merge_safetensors(base, adapter, out), folder)


@pytest.mark.slow
@QUICK
@given(flips=FLIPS)
def test_a_base_of_safetensors(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("flips")
    base = write_folder(folder / "base", base_weights())
    adapter = peft_folder.write_folder(folder / "adapter", adapter_tensors())
    weights = base / "model.safetensors"
    weights.write_bytes(flipped(weights.read_bytes(), 1500, flips))
    survives(lambda out: merge_safetensors(base, adapter, out), folder)
