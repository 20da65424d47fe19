"""Messages become text the model was trained on, whatever shape the client gave them."""

from __future__ import annotations

from typing import Any

import pytest

from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.prompt import plain_messages
from macaron.engine.llamacpp.request import choice_count, prefilled, prepare, with_seed
from macaron.engine.special import SpecialTokens
from macaron.errors import BadRequest
from tests.engine.llamacpp.hops import SYSTEM, WEATHER, hop, user

CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
WRITTEN = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>'
NONE = SpecialTokens(())


def assistant(content: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def test_system_message_comes_first_even_if_the_client_sent_none() -> None:
    first, second = plain_messages([user("Hi")])
    assert first["role"] == "system"
    assert first["content"]
    assert second == user("Hi")


@pytest.mark.parametrize("role", ["system", "developer"])
def test_leading_instructions_of_the_client_are_kept_alone(role: str) -> None:
    messages = [{"role": role, "content": "Be brief."}, user("Hi")]
    assert plain_messages(messages) == messages


def test_calls_are_written_into_the_content_on_lines_of_their_own() -> None:
    (_, message) = plain_messages([SYSTEM, assistant("One moment.", CALL, CALL)])
    assert message == {"role": "assistant", "content": f"One moment.\n{WRITTEN}\n{WRITTEN}"}


def test_parts_of_text_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"]
    assert plain_messages([SYSTEM, {"role": "user", "content": parts}])[1] == user("a\nb\nc")


def test_fields_the_model_cannot_see_are_left_out() -> None:
    messages = [SYSTEM, {"role": "tool", "tool_call_id": "c1", "content": "21", "name": "x"}]
    assert plain_messages(messages)[1] == {"role": "tool", "content": "21"}


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "robot", "content": "x"}, "messages.1.role"),
        ({"role": "user", "content": 5}, "messages.1.content"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages.1.content.0"),
        ({"role": "user", "content": [7]}, "messages.1.content.0"),
        ({"role": "assistant", "tool_calls": [{"id": "x"}]}, "messages.1.tool_calls"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_its_path(message: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        plain_messages([SYSTEM, message])
    assert refusal.value.param == param


def test_control_tokens_are_neutralised_wherever_the_template_shows_text() -> None:
    special = SpecialTokens(("<|im_end|>",))
    tool = {"type": "function", "function": {"name": "f", "description": "<|im_end|>"}}
    call = {"function": {"name": "f", "arguments": '{"a": "<|im_end|>"}'}}
    messages = [user("<|im_end|>"), assistant("<|im_end|>", call), {"role": "tool", "content": "<|im_end|>"}]
    prepared = prepare(hop(messages, tools=[tool]), special)
    assert "<|im_end|>" not in str((prepared.messages, prepared.fields))


def test_fields_of_the_client_that_stand_for_a_plan_do_not_reach_the_engine() -> None:
    request = hop("Hi", tools=[WEATHER], tool_choice="auto", n=2, response_format={"type": "text"}, temperature=None)
    fields = prepare(request, NONE).fields
    assert set(fields) == {"max_tokens", "chat_template_kwargs"}
    assert fields["chat_template_kwargs"] == {"tools": [WEATHER]}


def test_newer_name_of_max_tokens_is_understood() -> None:
    assert prepare(hop("Hi", max_completion_tokens=7), NONE).fields["max_tokens"] == 7


@pytest.mark.parametrize("stop", ["x", ["x"], None])
def test_stop_strings_of_the_client_are_kept(stop: str | list[str] | None) -> None:
    fields = prepare(hop("Hi", tools=[WEATHER], parallel_tool_calls=False, stop=stop), NONE).fields
    assert fields["stop"] == [*(["x"] if stop else []), "</tool_call>"]


def test_prefill_is_the_beginning_of_the_answer() -> None:
    asked = [SYSTEM, user("Hi")]
    begun = {"role": "assistant", "content": "L"}
    assert prefilled(asked, "", "") == asked
    assert prefilled(asked, "", "L") == [*asked, begun]
    assert prefilled([*asked, {"role": "assistant", "content": "Label: "}], "Label: ", "L") == [*asked, begun]


@pytest.mark.parametrize("count", [0, 129, "2", True, 1.5])
def test_number_of_choices_is_checked(count: object) -> None:
    with pytest.raises(BadRequest) as refusal:
        choice_count({"n": count})
    assert refusal.value.param == "n"


def test_every_choice_has_a_seed_of_its_own() -> None:
    assert [with_seed({"seed": 5}, choice)["seed"] for choice in range(3)] == [5, 6, 7]
    assert "seed" not in with_seed({}, 1)


@pytest.mark.engine
async def test_template_writes_calls_as_the_engine_is_sent_them(client: ServerClient) -> None:
    """Training renders calls with the template, serving writes them itself: both must give the same prompt."""
    messages = [SYSTEM, user("Weather?"), assistant("One moment.", CALL, CALL), {"role": "tool", "content": "21"}]
    kwargs = {"tools": [WEATHER]}
    assert await client.render(messages, kwargs) == await client.render(plain_messages(messages), kwargs)


@pytest.mark.engine
async def test_template_is_chatml_with_the_tools_in_the_system_message(client: ServerClient) -> None:
    prompt = await client.render([SYSTEM, user("Hi")], {"tools": [WEATHER]})
    head, _, rest = prompt.partition("<|im_end|>\n")
    assert head.startswith(f"<|im_start|>system\n{SYSTEM['content']}\n\n")
    assert '<tools>\n{"name": "get_weather", ' in head
    assert rest == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
