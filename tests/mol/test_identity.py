"""Canonical items and their chained digests."""

from __future__ import annotations

import hashlib
import tracemalloc
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.conversation import Item, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from macaron.mol import identity
from macaron.mol.identity import (
    MAX_ARGUMENTS,
    ItemDigests,
    answer_ends,
    canonical_arguments,
    canonical_item,
    canonical_text,
    chain,
    head_digest,
    item_digest,
    visible_count,
)
from tests.mol.heart import result, said, user

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

GOLDEN: list[tuple[list[Item], str]] = [
    ([user("hi")], "v1:9ff0fe1df0f41f6fd660598b4595eb7ce2edccfb56f9d522a148ebcfff05f809"),
    ([user("hi"), said("hello")], "v1:666624845acc2ba4d2fb8b1876fdd495e5a12d0c644b03e7c863342392786141"),
    (
        [user("caf\u00e9"), ToolCall("c", "look", '{"b":1,"a":[]}'), result("c", "ok")],
        "v1:2e73c8de584f827475ae3c3fdf7a846b43190eac5b6ca96ed9204a6c29cd9531",
    ),
    (
        [Message("user", (Text("see"), Media("image_url", IMAGE)))],
        "v1:2d6a197e9a3e523f5a43b4bc31857074c4363d21491e10fa1b61b3d09bdc4c60",
    ),
    (
        [user("hi"), Opaque("web_search_call", {"b": 1, "a": 2})],
        "v1:a236a388a9a5ac5ec103ea2ac43c8838a555cf964669dcae59bd56025163aa43",
    ),
]


@pytest.mark.parametrize(("items", "digest"), GOLDEN)
def test_the_digests_of_version_1_are_golden(items: list[Item], digest: str) -> None:
    assert chain(items)[-1] == digest


def test_a_digest_is_the_hash_of_the_digest_before_and_the_hash_of_the_items_canonical_json() -> None:
    def after(before: str, item: bytes) -> str:
        return "v1:" + hashlib.sha256((before + hashlib.sha256(item).hexdigest()).encode()).hexdigest()

    first = after("v1:", b'["message","user","hi",[]]')
    second = after(first, b'["message","assistant","a b",[]]')
    assert chain([user("hi"), said(" a\n b ")]) == [first, second]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(user("a  b\n"), user(" a\tb"), id="white space"),
        pytest.param(user("cafe\u0301"), user("caf\u00e9"), id="NFC"),
        pytest.param(Message("user", (Text("a b"),)), Message("user", (Text("a"), Text("b"))), id="parts and a string"),
        pytest.param(ToolCall("1", "f", '{"a": 1, "b": 2}'), ToolCall("2", "f", '{"b":2,"a":1}'), id="arguments"),
        pytest.param(result("1", "ok"), result("2", " ok "), id="call ids of results"),
        pytest.param(Message("user", (Text("a"),), {"name": "x"}), user("a"), id="fields for the engine only"),
    ],
)
def test_these_items_are_the_same(one: Item, other: Item) -> None:
    assert canonical_item(one) == canonical_item(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(user("ab"), user("a b"), id="white space inside a word"),
        pytest.param(user("a"), said("a"), id="role"),
        pytest.param(user("a"), user("A"), id="case"),
        pytest.param(ToolCall("1", "f", "{}"), ToolCall("1", "g", "{}"), id="tool name"),
        pytest.param(ToolCall("1", "f", '{"a":1}'), ToolCall("1", "f", '{"a":"1"}'), id="type of an argument"),
        pytest.param(ToolCall("1", "f", '{"a":[1,2]}'), ToolCall("1", "f", '{"a":[2,1]}'), id="order of an array"),
        pytest.param(ToolCall("1", "f", '{"a":'), ToolCall("1", "f", '{"a": '), id="arguments that are not JSON"),
        pytest.param(result("1", "a"), said("a"), id="kind"),
        pytest.param(
            Message("user", (Media("image_url", IMAGE),)),
            Message("user", (Media("image_url", {**IMAGE, "image_url": {"url": "data:image/png;base64,AQ=="}}),)),
            id="media",
        ),
        pytest.param(user('a",[]]'), user("a"), id="text that looks like the canonical form"),
    ],
)
def test_these_items_differ(one: Item, other: Item) -> None:
    assert canonical_item(one) != canonical_item(other)


def test_media_is_hashed_and_not_carried() -> None:
    big = Media("image_url", {"type": "image_url", "image_url": {"url": "data:," + "A" * 100_000}})
    data = canonical_item(Message("user", (big,)))
    assert data is not None
    assert len(data) < 200


def test_the_order_of_keys_in_media_does_not_matter() -> None:
    other = dict(reversed(IMAGE.items()))
    assert canonical_item(Message("user", (Media("image_url", IMAGE),))) == canonical_item(
        Message("user", (Media("image_url", other),))
    )


def test_reasoning_counts_for_nothing() -> None:
    items: list[Item] = [user("a"), Reasoning("hm"), said("b")]
    digests = chain(items)
    assert digests[1] == digests[0]
    assert digests[2] == chain([user("a"), said("b")])[-1]
    assert visible_count(items) == 2


def test_arguments_that_are_nested_too_deep_to_parse_count_as_text() -> None:
    deep = "[" * 200_000
    assert canonical_item(ToolCall("1", "f", deep)) != canonical_item(ToolCall("1", "f", deep + "["))


def test_long_arguments_count_as_text() -> None:
    long = '{"a": "' + "x" * MAX_ARGUMENTS + '"}'
    assert canonical_arguments(long) == long
    assert canonical_arguments('{"a": "x"}') == '{"a":"x"}'


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["word", "e\u0301", "\u1100\u1161", " ", "\n", "\u2000", "\u0301"]), max_size=60),
    st.integers(1, 9),
)
def test_a_long_text_is_the_same_in_pieces(texts: list[str], piece: int) -> None:
    text = "".join(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "PIECE", piece)
        in_pieces = canonical_text(text)
    assert in_pieces == " ".join(unicodedata.normalize("NFC", text).split())


def test_a_chain_goes_on_from_any_of_its_digests() -> None:
    items: list[Item] = [user("a"), said("b"), user("c")]
    whole = chain(items)
    assert chain(items[1:], whole[0]) == whole[1:]


def test_a_step_can_only_end_where_the_model_stops_speaking() -> None:
    items: list[Item] = [user("a"), Reasoning("r"), said("b"), ToolCall("1", "f", "{}"), result("1", "x"), said("c")]
    assert answer_ends(items) == [3, 5]


def test_a_head_is_compared_byte_by_byte_but_for_the_order_of_its_tools() -> None:
    one = {"type": "function", "function": {"name": "a"}}
    two = {"type": "function", "function": {"name": "b"}}
    system = (Message("system", (Text("be brief"),)),)
    assert head_digest(system, [one, two]) == head_digest(system, [two, one])
    assert head_digest(system, [one]) != head_digest(system, [one, two])
    assert head_digest(system, []) != head_digest((Message("system", (Text("be  brief"),)),), [])
    assert head_digest(system, []) != head_digest((), [])


def test_a_result_with_an_image_is_not_the_result_without() -> None:
    with_image = ToolResult("1", (Text("a"), Media("image_url", IMAGE)))
    assert canonical_item(with_image) != canonical_item(result("1", "a"))


def test_remembered_digests_are_those_that_would_be_made_anew() -> None:
    remembering = ItemDigests(limit=4000)
    items = [user(f"{number} " + "word " * 200) for number in range(10)] + [said("word " * 200), user("short")]
    for _ in range(3):
        assert [remembering(item) for item in items] == [item_digest(item) for item in items]


def test_what_is_remembered_stays_within_its_bound() -> None:
    remembering = ItemDigests(limit=10_000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(200):
            remembering(user(f"{number} " + "word " * 400))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 30_000
