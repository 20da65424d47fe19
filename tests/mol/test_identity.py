"""Canonical items and their chained digests."""

from __future__ import annotations

import hashlib
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.conversation import Item, Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from macaron.mol import identity
from macaron.mol.identity import (
    MAX_ARGUMENTS,
    answer_ends,
    canonical_arguments,
    canonical_item,
    canonical_text,
    chain,
    head_digest,
    visible_count,
)
from tests.mol.heart import result, said, user

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

GOLDEN: list[tuple[list[Item], str]] = [
    ([user("hi")], "v1:260aa81158a56d121c6c5683a55400ba23a9eb3bf85ce9edcb481dfeeb997ca0"),
    ([user("hi"), said("hello")], "v1:a420f35c9c207f53706dfb5bf825694de31a07fbfe423a1dd9a1c359daa3d908"),
    (
        [user("caf\u00e9"), ToolCall("c", "look", '{"b":1,"a":[]}'), result("c", "ok")],
        "v1:317b2cd0c6f4f8de0850af6ec5222ac398ba544ee391335b535f1486104bfbac",
    ),
    (
        [Message("user", (Text("see"), Media("image_url", IMAGE)))],
        "v1:a4f052b3671a468e47fcd694f8e6cd4836baece67e5842237b0c9a8a61cd6811",
    ),
    (
        [user("hi"), Opaque("web_search_call", {"b": 1, "a": 2})],
        "v1:91509e5eb2d2389736ff5c0b6e150cfc833306f0a7e01a4e79820af7f65f9781",
    ),
]


@pytest.mark.parametrize(("items", "digest"), GOLDEN)
def test_the_digests_of_version_1_are_golden(items: list[Item], digest: str) -> None:
    assert chain(items)[-1] == digest


def test_a_digest_is_the_hash_of_the_digest_before_and_the_canonical_json_of_the_item() -> None:
    first = "v1:" + hashlib.sha256(b'v1:["message","user","hi",[]]').hexdigest()
    second = "v1:" + hashlib.sha256(first.encode() + b'["message","assistant","a b",[]]').hexdigest()
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
