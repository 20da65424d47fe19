"""Which session a request continues, through a real store."""

from __future__ import annotations

import asyncio
import json
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from macaron.conversation import Item, Message, Reasoning, Text, ToolCall, ToolResult, text_of
from macaron.hcp import Loaded
from macaron.mol import lookup
from macaron.mol.identity import canonical_item, head_digest, item_digest
from macaron.mol.lookup import Found, TurnRequest, continues_tools, find, hydrate
from tests.mol.heart import Heart, InstantEngine, answering, result, said, user

WORDS = st.text(alphabet="abcé 你\n", min_size=1, max_size=12).filter(str.strip)
ARGUMENTS = st.dictionaries(st.sampled_from("xyz"), st.integers(-3, 3) | WORDS, max_size=3)


class Exchange(NamedTuple):
    """A user turn: the question, the tool calls on the way, and the answer."""

    question: str
    loops: list[tuple[dict[str, Any], str]]
    answer: str


EXCHANGES = st.lists(
    st.builds(Exchange, WORDS, st.lists(st.tuples(ARGUMENTS, WORDS), max_size=2), WORDS), min_size=1, max_size=4
)


async def talked(loaded: Loaded, exchanges: Sequence[Exchange]) -> tuple[Heart, list[Item]]:
    """A heart that has had a conversation, and the conversation as its client has it."""
    answers: list[Any] = []
    heart = Heart(loaded, InstantEngine(lambda _: "L1", lambda hop: answers.pop(0) if hop.kind == "answer" else []))
    items: list[Item] = []
    for number, exchange in enumerate(exchanges):
        items.append(user(exchange.question))
        for place, (arguments, output) in enumerate(exchange.loops):
            call = ToolCall(f"call_{number}_{place}", "look", json.dumps(arguments))
            answers.append(answering(calls=[call]))
            items += (await heart.turn(items)).items
            items.append(result(call.call_id, output))
        answers.append(answering(exchange.answer))
        items += (await heart.turn(items)).items
    return heart, items


@st.composite
def resent(draw: st.DrawFn, items: Sequence[Item]) -> list[Item]:
    """The same visible history as another client would write it."""
    again: list[Item] = []
    for item in items:
        match item:
            case Message(role, parts):
                if role == "assistant" and draw(st.booleans()):
                    again.append(Reasoning("something it thought"))
                again.append(Message(role, draw(rewritten(text_of(parts)))))
            case ToolCall(call_id, name, arguments):
                values = json.loads(arguments)
                order = draw(st.permutations(sorted(values)))
                indent = draw(st.sampled_from([None, 0, 4]))
                again.append(
                    ToolCall(f"new_{call_id}", name, json.dumps({key: values[key] for key in order}, indent=indent))
                )
            case ToolResult(call_id, parts):
                again.append(ToolResult(f"new_{call_id}", draw(rewritten(text_of(parts)))))
    return again


@st.composite
def rewritten(draw: st.DrawFn, text: str) -> tuple[Text, ...]:
    """A text with other white space, decomposed, and cut into parts where it has a space."""
    words = unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), text).split()
    gaps = draw(st.lists(st.sampled_from([" ", "\n", "\t  "]), min_size=len(words), max_size=len(words)))
    cut = draw(st.integers(0, len(words)))
    halves = [
        "".join(f"{gap}{word}" for gap, word in zip(gaps[a:b], words[a:b], strict=True))
        for a, b in ((0, cut), (cut, None))
    ]
    return tuple(Text(half) for half in halves if half)


async def look(heart: Heart, items: Sequence[Item], system: str = "") -> Found:
    run = (Message("system", (Text(system),)),) if system else ()
    request = TurnRequest(id="later", tenant="local", items=tuple(items), system=run)
    return await find(heart.store, request, head_digest(run, ()))


@settings(deadline=None, max_examples=60)
@given(st.data(), EXCHANGES, st.sampled_from(["", "It is 10:32."]))
def test_however_a_client_writes_its_history_it_finds_its_session(
    loaded: Loaded, data: st.DataObject, exchanges: list[Exchange], system: str
) -> None:
    async def law() -> None:
        heart, items = await talked(loaded, exchanges)
        found = await look(heart, [*data.draw(resent(items)), user("and then?")], system)
        assert len(found.path) == sum(len(exchange.loops) + 1 for exchange in exchanges)
        assert found.new == (user("and then?"),)

    asyncio.run(law())


@settings(deadline=None, max_examples=60)
@given(st.data(), EXCHANGES)
def test_a_history_that_says_something_else_never_goes_beyond_what_it_shares(
    loaded: Loaded, data: st.DataObject, exchanges: list[Exchange]
) -> None:
    async def law() -> None:
        heart, items = await talked(loaded, exchanges)
        place = data.draw(st.integers(0, len(items) - 1))
        changed = [*items[:place], differing(items[place]), *items[place + 1 :], user("and then?")]
        found = await look(heart, changed)
        known = [item for step in found.path for item in (*(step.inputs or ()), *(step.outputs or ()))]
        assert list(map(canonical_item, known)) == list(map(canonical_item, items[: len(known)]))
        assert len(known) <= place

    asyncio.run(law())


def differing(item: Item) -> Item:
    match item:
        case Message(_, parts) | ToolResult(_, parts):
            return replace(item, parts=(Text(text_of(parts) + "!"),))
        case ToolCall():
            return replace(item, arguments='{"else":true}')
        case _:
            raise AssertionError(item)


async def test_another_tenant_or_end_user_never_finds_it(loaded: Loaded) -> None:
    heart, items = await talked(loaded, [Exchange("q", [], "a")])
    for request in (
        TurnRequest(id="x", tenant="other", items=(*items, user("more"))),
        TurnRequest(id="x", tenant="local", user="other", items=(*items, user("more"))),
    ):
        assert (await find(heart.store, request, head_digest((), ()))).path == ()


async def test_what_follows_the_longest_known_prefix_is_new(loaded: Loaded) -> None:
    heart, items = await talked(loaded, [Exchange("q", [], "a")])
    foreign = [user("asked elsewhere"), said("answered elsewhere"), user("now here")]
    found = await look(heart, [*items, *foreign])
    assert len(found.path) == 1
    assert list(found.new) == foreign


async def test_two_requests_that_extend_one_step_are_two_branches(loaded: Loaded) -> None:
    heart, items = await talked(loaded, [Exchange("q", [], "a")])
    heart.engine.script = lambda hop: answering("left" if "go left" in str(hop.messages[-1]) else "right")
    left = [*items, user("go left")]
    right = [*items, user("go right")]
    left += (await heart.turn(left)).items
    right += (await heart.turn(right)).items
    for branch in (left, right):
        found = await look(heart, [*branch, user("on")])
        texts = [text_of(item.parts) for step in found.path for item in step.outputs or () if isinstance(item, Message)]
        assert texts == ["a", "left" if branch is left else "right"]


async def test_a_named_session_wins_over_an_equal_head(loaded: Loaded) -> None:
    heart, _ = await talked(loaded, [])
    heart.engine.script = lambda hop: answering("a")
    system = (Message("system", (Text("be brief"),)),)
    named = await heart.turn([user("q")], session="sess_named")
    plain = await heart.turn([user("q")], system=system)
    assert named.session != plain.session
    request = TurnRequest(id="x", tenant="local", items=(user("q"), said("a"), user("more")), system=system)
    head = head_digest(system, ())
    by_head = await find(heart.store, request, head)
    by_name = await find(heart.store, replace(request, session="sess_named"), head)
    assert by_head.parent is not None
    assert by_name.parent is not None
    assert by_head.parent.session == plain.session
    assert by_name.parent.session == "sess_named"


async def test_results_get_the_call_ids_the_session_has(loaded: Loaded) -> None:
    heart, items = await talked(loaded, [Exchange("q", [({"x": 1}, "one")], "a")])
    call = replace(items[1], call_id="rewritten")
    found = await look(heart, [items[0], call, result("rewritten", "another result")])
    assert found.new == (result("call_0_0", "another result"),)
    assert continues_tools(found)


async def test_a_call_id_used_again_stands_for_the_last_call(loaded: Loaded) -> None:
    """The client calls every call `same`; the engine called the first one otherwise."""
    answers = [answering(calls=[ToolCall("first", "f", "{}")]), answering("a")]
    answers.append(answering(calls=[ToolCall("same", "g", "{}")]))
    heart = Heart(loaded, InstantEngine(lambda _: "L1", lambda hop: answers.pop(0) if hop.kind == "answer" else []))
    items: list[Item] = [user("q")]
    for more in ([result("same", "1")], [user("next")], [result("same", "2")]):
        items += [replace(item, call_id="same") if isinstance(item, ToolCall) else item for item in
                  (await heart.turn(items)).items]  # fmt: skip
        items += more
    found = await look(heart, items)
    assert found.new == (result("same", "2"),)
    assert continues_tools(found)


async def test_a_user_message_after_the_results_starts_a_new_turn_one_before_them_does_not(loaded: Loaded) -> None:
    heart, items = await talked(loaded, [Exchange("q", [({}, "one")], "a")])
    asked = items[:2]
    output = result("call_0_0", "one")
    assert not continues_tools(await look(heart, [*asked, output, user("thanks, and now?")]))
    assert continues_tools(await look(heart, [*asked, user("here it is"), output]))
    assert not continues_tools(await look(heart, [*asked, user("never mind")]))
    assert not continues_tools(await look(heart, [*asked, result("unknown", "one")]))


async def test_some_of_the_results_are_enough_to_continue(loaded: Loaded) -> None:
    calls = [ToolCall("c1", "f", "{}"), ToolCall("c2", "g", "{}")]
    heart = Heart(loaded, InstantEngine(lambda _: "L1", lambda hop: answering(calls=calls)))
    items = [user("q"), *(await heart.turn([user("q")])).items]
    assert continues_tools(await look(heart, [*items, result("c2", "two")]))


async def test_steps_without_content_take_it_from_the_request(loaded: Loaded) -> None:
    heart, items = await talked(loaded, [Exchange("q", [({"x": 1}, "one")], "a"), Exchange("r", [], "b")])
    path = (await look(heart, [*items, user("more")])).path
    bare = [replace(step, inputs=None, outputs=None) for step in path]
    assert hydrate(bare, items)[0] == path


async def test_what_the_request_says_before_an_evicted_root_is_put_in_front(loaded: Loaded) -> None:
    heart, items = await talked(loaded, [Exchange("q", [], "a"), Exchange("r", [], "b")])
    path = (await look(heart, [*items, user("more")])).path
    steps, _ = hydrate(path[1:], items)
    assert steps[0].inputs == tuple(items[:3])
    assert steps[0].outputs == (said("b"),)


async def test_a_very_long_conversation_is_digested_off_the_event_loop(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    heart, items = await talked(loaded, [Exchange("q", [({"x": 1}, "one")], "a")])
    long = "word " * 120_000
    threads: list[threading.Thread] = []

    def recorded(item: Item) -> str | None:
        threads.append(threading.current_thread())
        return item_digest(item)

    monkeypatch.setattr(lookup, "item_digest", recorded)
    longs: list[Item] = [user(long), result("c", long), ToolCall("c", "f", long)]
    for item in longs:
        assert (await look(heart, [*items, item])).path
        assert threads
        assert threading.main_thread() not in threads
        threads.clear()
    await look(heart, [*items, user("short")])
    assert threads == []


async def test_hidden_state_is_opened_step_by_step(loaded: Loaded) -> None:
    """Extending a history once under another head does not open what was made under the first."""
    heart, items = await talked(loaded, [Exchange("q", [], "a")])
    other = (Message("system", (Text("other head"),)),)
    heart.engine.script = lambda hop: answering("b")
    items = [*items, user("r")]
    items += (await heart.turn(items, system=other)).items
    found = await look(heart, [*items, user("s")], "other head")
    first, second = found.path
    assert found.hidden == {second.id}
    assert first.summary == "a"
