"""The document in the store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from macaron.errors import StoreError
from macaron.registry.desired import (
    Bound,
    Conflict,
    Desired,
    Entry,
    Installed,
    Probed,
    RouteCheck,
    canary,
    decode,
    encode,
    problems,
    remove,
)
from macaron.registry.desired import codec as codec_module
from tests.registry.desired.states import L2, L4, PROFILE, REPLICAS, candidate, empty, live, registered, revision

RICH = canary(candidate(live(live(empty(), L4, 1), L4, 2), L4, 3), L4, revision(3), 0.25, REPLICAS, PROFILE)


def entry(**changes: Any) -> Desired:
    """`RICH` with L4 changed."""
    return replace(RICH, entries=(replace(RICH.find(L4), **changes),))


def item(seed: int, **changes: Any) -> Desired:
    """`RICH` with a revision of L4 changed."""
    revisions = RICH.find(L4).revisions
    return entry(revisions=tuple(replace(it, **changes) if it.revision == revision(seed) else it for it in revisions))


def test_a_document_comes_back_as_it_was() -> None:
    removed = remove(registered(RICH, L4, 4), L4, revision(4), ())
    assert decode(encode(removed)) == removed
    assert decode(encode(empty())) == empty()


UNREACHABLE = {
    "no contract": replace(empty(), contract=""),
    "an entry twice": replace(RICH, entries=RICH.entries * 2),
    "no revisions": entry(revisions=(), live="", previous=None),
    "a revision twice": entry(revisions=RICH.find(L4).revisions + RICH.find(L4).revisions[:1]),
    "a label outside the form": entry(label="l4"),
    "a tenant that is no key's name": entry(tenant="a b"),
    "two live": item(1, state="live"),
    "live that is not there": entry(live=revision(9)),
    "live that is only a candidate": item(2, state="candidate"),
    "previous that is not there": entry(previous=revision(9)),
    "previous that is live": entry(previous=revision(2)),
    "previous that is retired": item(1, state="retired"),
    "previous without live": replace(registered(empty(), L2, 1), entries=(
        replace(registered(empty(), L2, 1).find(L2), previous=""),)),
    "two on trial": item(1, state="shadow", share=0.5),
    "a trial without a share": item(3, share=0.0),
    "a share above one": item(3, share=1.5),
    "a share of a live revision": item(2, share=0.5),
    "a live revision without probes": item(2, probed=()),
    "a canary without a route check": item(3, route_check=None),
    "a route check against nothing": item(3, route_check=RouteCheck(True)),
    "a waived check that passed": item(3, route_check=RouteCheck(True, waived="x")),
    "no card for a new label": item(3, card=None),
    "a revision that is no hash": item(3, revision="sha256:1"),
    "a replica twice": item(3, probed=RICH.find(L4).find(revision(3)).probed * 2),
    "negative bytes": item(3, bytes=-1),
    "a time that is none": item(3, created=-1.0),
    "a passed probe without a number": item(3, probed=(Probed("one", True), Probed("two", True, 0.4))),
    "too many entries": replace(empty(), entries=tuple(
        replace(registered(empty(), L4, 1).find(L4), label=f"N{number}") for number in range(1025))),
    "a bound name twice": replace(empty(), bound=(Bound(f"L4@{revision(1)[7:19]}", revision(1)),) * 2),
    "a note over two lines": item(3, note="a\nb"),
    "a trial with nothing live": replace(empty(), entries=(Entry("L4", (
        replace(RICH.find(L4).find(revision(3)), state="shadow"),)),)),
    "an engine name for two revisions": replace(RICH, entries=(*RICH.entries, Entry("L4", (
        Installed(revision(1)[:19] + "f" * 52, card=RICH.find(L4).card),), "acme"))),
    "a bound name of other bytes": msgspec.convert(
        {"contract": "c", "bound": [{"engine_name": "L4@0123456789ab", "revision": revision(1)}]}, Desired),
}  # fmt: skip


@pytest.mark.parametrize("desired", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_a_state_that_no_change_leads_to_is_not_read(desired: Desired) -> None:
    assert list(problems(desired))
    with pytest.raises(StoreError, match="cannot be used") as caught:
        decode(msgspec.json.encode(desired))
    assert caught.value.param


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"contract":"c","more":1}', b"\xff", b"[" * 100_000])
def test_what_is_no_document_is_not_read(document: bytes) -> None:
    with pytest.raises(StoreError, match="restore the store"):
        decode(document)


@given(cut=st.integers(min_value=0, max_value=len(encode(RICH)) - 1), byte=st.binary(min_size=1, max_size=1))
def test_a_damaged_document_is_refused_or_another_state(cut: int, byte: bytes) -> None:
    whole = encode(RICH)
    try:
        found = decode(whole[:cut] + byte + whole[cut + 1 :])
    except StoreError:
        return
    assert decode(encode(found)) == found


def test_a_document_that_is_too_large_is_neither_written_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    document = encode(RICH)
    monkeypatch.setattr(codec_module, "MAX_DOCUMENT", len(document) - 1)
    with pytest.raises(Conflict, match="remove retired revisions"):
        encode(RICH)
    with pytest.raises(StoreError, match="the limit is"):
        decode(document)
