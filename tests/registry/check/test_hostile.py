"""Whatever bytes lie in a file, a check ends with a report, and only what is whole passes."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open

from macaron.registry.check import Report, check_adapter
from tests.registry.check.adapters import adapter, errors, tiny_base

WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
RUNS = settings(max_examples=60, deadline=None)


def whole() -> dict[str, bytes]:
    """The files of an adapter in order."""
    with TemporaryDirectory() as scratch:
        folder = adapter(Path(scratch) / "a")
        return {name: (folder / name).read_bytes() for name in (WEIGHTS, CONFIG)}


FILES = whole()
LENGTH = int.from_bytes(FILES[WEIGHTS][:8], "little")


def checked(**files: bytes) -> Report:
    """Of the adapter in order with some files replaced, by the words `weights`, `config` and `run`."""
    names = {"weights": WEIGHTS, "config": CONFIG, "run": "run.json", "card": "README.md"}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, raw in {**FILES, **{names[word]: raw for word, raw in files.items()}}.items():
            (folder / name).write_bytes(raw)
        report = check_adapter(folder, tiny_base())
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
    assert all(text.isprintable() for item in report.findings for text in (item.field, item.value, item.message))
    return report


def headed(header: Any, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + data


def test_the_adapter_of_these_tests_passes() -> None:
    assert checked().ok


@RUNS
@given(st.binary(max_size=400))
def test_random_bytes_never_pass(raw: bytes) -> None:
    assert not checked(weights=raw).ok
    assert not checked(config=raw).ok
    assert checked(run=raw, card=raw).revision


@RUNS
@given(st.integers(0, len(FILES[WEIGHTS]) - 1))
def test_a_truncated_file_never_passes(length: int) -> None:
    report = checked(weights=FILES[WEIGHTS][:length])
    assert not report.ok
    assert report.revision == ""


@RUNS
@given(st.binary(min_size=1, max_size=64))
def test_bytes_after_the_end_never_pass(more: bytes) -> None:
    assert not checked(weights=FILES[WEIGHTS] + more).ok


@RUNS
@given(st.integers(0, LENGTH + 7), st.binary(min_size=1, max_size=4))
def test_what_passes_with_a_changed_header_is_what_safetensors_reads(at: int, change: bytes) -> None:
    raw = FILES[WEIGHTS][:at] + change + FILES[WEIGHTS][at + len(change) :]
    if not checked(weights=raw).ok:
        return
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "x"
        path.write_bytes(raw)
        with safe_open(path, "np") as file:
            assert file.keys()


@RUNS
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=5,
    )
)
def test_any_json_ends_with_a_report(table: dict[str, Any]) -> None:
    options = {**json.loads(FILES[CONFIG]), **table}
    checked(weights=headed(table), config=json.dumps(options).encode(), run=json.dumps(table).encode())


@RUNS
@given(st.text(min_size=1, max_size=20).filter(lambda text: text != "__metadata__"))
def test_any_tensor_name_ends_with_a_report(name: str) -> None:
    report = checked(weights=headed({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)))
    assert "unknown_key" in {item.code for item in report.findings}


@pytest.mark.parametrize(
    "raw",
    [
        headed({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
        headed({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)),
        headed(b"{" + b'"a":[' * 100_000),
        (2**63).to_bytes(8, "little") + b"{}",
        (2**25 + 1).to_bytes(8, "little") + b"{" + bytes(2**25 + 8),
    ],
)
def test_a_header_that_lies_is_refused(raw: bytes) -> None:
    assert "bad_safetensors" in {item.code for item in checked(weights=raw).findings}


def test_two_tensors_of_one_name_collide() -> None:
    entry = b'{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    report = checked(weights=headed(b'{"a":' + entry + b',"\\u0061":' + entry + b"}", bytes(4)))
    assert "name_collision" in {item.code for item in report.findings}


def test_a_type_that_is_not_known_hides_nothing_else() -> None:
    report = checked(weights=headed({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)))
    assert {"dtype", "unknown_key"} <= {item.code for item in report.findings}


def test_an_option_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "a")
    text = (folder / CONFIG).read_text()
    (folder / CONFIG).write_text(text.replace("{", '{"r": 8, ', 1))
    assert errors(folder)["duplicate_key"].value == "r"


def test_safetensors_refuses_a_gap_too() -> None:
    """The law of this file rests on its reader being as strict as ours."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "x"
        path.write_bytes(headed({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, bytes(8)))
        with pytest.raises(SafetensorError), safe_open(path, "np"):
            pass
