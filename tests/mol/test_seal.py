"""Seals: what is sealed comes back for the same bond and a known key, and for nothing else."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.mol.seal import MAX_STATE, MAX_TEXT, Bond, Envelope, Refusal, Sealer, hint_of

KEY, OTHER = b"k" * 32, b"o" * 32
DIGEST = "v1:" + "0123456789abcdef" * 4
BOND = Bond("tenant", "head", DIGEST)
NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sealed(sealer: Sealer, state: bytes = b"state", bond: Bond = BOND) -> str:
    text = sealer.seal(state, bond)
    assert text is not None
    return text


def opened(sealer: Sealer, text: str, bond: Bond = BOND) -> bytes | Refusal:
    envelope = sealer.envelope(text)
    return sealer.open(text, envelope, bond) if isinstance(envelope, Envelope) else envelope


@given(st.binary(max_size=2000), NAMES, NAMES, st.binary(min_size=32, max_size=32))
def test_what_is_sealed_comes_back(state: bytes, scope: str, head: str, digest: bytes) -> None:
    sealer, bond = Sealer([KEY], 60), Bond(scope, head, "v1:" + digest.hex())
    assert opened(sealer, sealed(sealer, state, bond), bond) == state


@settings(max_examples=300)
@given(st.binary(max_size=64), st.data())
def test_a_text_with_any_bit_changed_is_not_opened(state: bytes, data: st.DataObject) -> None:
    sealer = Sealer([KEY, OTHER], 60)
    raw = bytearray(urlsafe_b64decode(sealed(sealer, state)))
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    assert not isinstance(opened(sealer, urlsafe_b64encode(bytes(raw)).decode()), bytes)


@given(st.integers(0, 108))
def test_a_text_that_is_cut_is_not_opened(length: int) -> None:
    sealer = Sealer([KEY], 60)
    text = sealed(sealer, b"x" * 32)
    assert len(text) == 108
    assert isinstance(opened(sealer, text[:length]), bytes) is (length == 108)


@given(st.text(max_size=200))
def test_any_other_text_is_refused_and_nothing_raised(text: str) -> None:
    assert opened(Sealer([KEY], 60), text) == "malformed"


@pytest.mark.parametrize("field", ["scope", "head", "digest"])
def test_another_bond_opens_nothing(field: str) -> None:
    """The digest differs behind what the hint tells of it."""
    sealer = Sealer([KEY], 60)
    other = BOND._replace(**{field: DIGEST[:-1] + "0"})
    assert hint_of(other.digest) == hint_of(BOND.digest)
    assert opened(sealer, sealed(sealer), other) == "refused"


def test_parts_of_a_bond_cannot_be_moved_from_one_to_the_next() -> None:
    sealer = Sealer([KEY], 60)
    assert opened(sealer, sealed(sealer, bond=Bond("ab", "c", DIGEST)), Bond("a", "bc", DIGEST)) == "refused"


def test_the_first_key_seals_and_all_open() -> None:
    old, both, new = Sealer([KEY], 60), Sealer([OTHER, KEY], 60), Sealer([OTHER], 60)
    assert opened(both, sealed(old)) == b"state"
    assert opened(new, sealed(both)) == b"state"
    assert opened(new, sealed(old)) == "unknown_key"


def test_a_text_expires() -> None:
    clock = Clock()
    sealer = Sealer([KEY], 60, clock)
    text = sealed(sealer)
    clock.now += 59
    assert opened(sealer, text) == b"state"
    clock.now += 1
    assert opened(sealer, text) == "expired"


def test_a_lifetime_without_end_is_the_longest_there_is() -> None:
    sealer = Sealer([KEY], 1e12)
    assert opened(sealer, sealed(sealer)) == b"state"


def test_the_same_state_is_never_sealed_alike() -> None:
    sealer = Sealer([KEY], 60)
    assert sealed(sealer) != sealed(sealer)


def test_what_is_too_large_is_not_sealed() -> None:
    sealer = Sealer([KEY], 60)
    assert len(sealed(sealer, b"x" * MAX_STATE)) <= MAX_TEXT
    assert sealer.seal(b"x" * (MAX_STATE + 1), BOND) is None
    assert opened(sealer, "A" * (MAX_TEXT + 1)) == "oversized"
