"""Rows become the tokens that serving would show, and only what the model says carries loss."""

from __future__ import annotations

import random
from typing import Any

import pytest

from macaron.conversation import Message, Step, Text
from macaron.engine.special import SpecialTokens
from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.mol.dialogue import route_messages
from macaron.mol.prompt import question_messages
from macaron.mol.route import RouteTemplate, context_text, question, request_text
from macaron.registry.cards import registry_from
from macaron.train.base import BaseTokenizer
from macaron.train.batches import shared_length
from macaron.train.data.rows import PreferenceRow, RouteRow, SftRow
from macaron.train.encode import Encoded, SftEncoder
from macaron.train.render import ChatTemplate
from macaron.train.studio import Studio
from macaron.train.vary import read_cards, vary

TOOL = {
    "type": "function",
    "function": {"name": "find", "description": "找 a <place>", "parameters": {"type": "object"}},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "café"}'}}


def said(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def learned_text(row: Encoded, tokenizer: BaseTokenizer) -> str:
    return "".join(tokenizer.text(row.ids[place]) for place in row.learned)


def whole_text(row: Encoded, tokenizer: BaseTokenizer) -> str:
    return "".join(tokenizer.text(token) for token in row.ids)


def test_loss_is_on_content_calls_and_the_end_of_every_answer(studio: Studio, tokenizer: BaseTokenizer) -> None:
    messages = (
        said("system", "Be brief."),
        said("user", "where is it"),
        said("assistant", None, tool_calls=[CALL]),
        said("tool", "here", tool_call_id="c1"),
        said("assistant", "It is here."),
    )
    row = studio.sft(SftRow("a", "s", messages=messages, tools=(TOOL,)), "L0")
    call = '<tool_call>{"name": "find", "arguments": {"q": "caf'
    text = learned_text(row, tokenizer)
    assert text.startswith(call)
    assert text.endswith("<|im_end|>It is here.<|im_end|>")
    assert row.learned[-1] == len(row.ids) - 1


def test_answers_that_are_given_carry_no_loss(studio: Studio, tokenizer: BaseTokenizer) -> None:
    messages = (said("user", "one"), said("assistant", "first"), said("user", "two"), said("assistant", "second"))
    row = studio.sft(SftRow("a", "s", messages=messages, given=3), "L0")
    assert learned_text(row, tokenizer) == "second<|im_end|>"
    assert "first" in whole_text(row, tokenizer)


def test_rows_with_the_same_tools_in_any_order_begin_alike_up_to_the_request(
    studio: Studio, tokenizer: BaseTokenizer
) -> None:
    other = {"type": "function", "function": {"name": "add", "description": "d" * 99, "parameters": {"type": "object"}}}
    rows = [
        SftRow(request, "s", messages=(said("user", request), said("assistant", None, tool_calls=[CALL])), tools=tools)
        for request, tools in (("where is it", (TOOL, other)), ("1 find", (other, TOOL)))
    ]
    encoded = [studio.sft(row, "L1") for row in rows]
    shared = "".join(tokenizer.text(token) for token in encoded[0].ids[: shared_length(encoded)])
    assert "</tools>" in shared
    assert shared.endswith("<|im_start|>user\n")


def test_the_head_is_the_identity_then_the_clients_system_message_then_the_tools(
    studio: Studio, tokenizer: BaseTokenizer, tiny_loaded: Loaded
) -> None:
    identity = tiny_loaded.text("mol.adapters.L0.prompt_path").strip()
    messages = (said("system", "Be brief."), said("user", "hi"), said("assistant", "hello"))
    text = whole_text(studio.sft(SftRow("a", "s", messages=messages, tools=(TOOL,)), "L0"), tokenizer)
    assert text.startswith(f"<|im_start|>system\n{identity}\n\nBe brief.\n\nTools you may call.")
    assert '"description": "' in text


def test_special_tokens_that_a_user_quotes_are_no_tokens(studio: Studio, tokenizer: BaseTokenizer) -> None:
    messages = (said("user", "what is <|im_end|>?"), said("assistant", "A mark."))
    plain = studio.sft(SftRow("a", "s", messages=(said("user", "what is it?"), messages[1])), "L0")
    quoted = studio.sft(SftRow("a", "s", messages=messages), "L0")
    assert quoted.ids.count(tokenizer.end) == plain.ids.count(tokenizer.end) == 3


def test_a_template_that_rewrites_the_past_loses_the_mask(tokenizer: BaseTokenizer) -> None:
    source = "{{ messages | length }}{% for m in messages %}[{{ m.role }}]{{ m.content }}<|im_end|>{% endfor %}"
    encoder = SftEncoder(ChatTemplate(source, SpecialTokens(())), tokenizer, "Me.", merge_system=True)
    with pytest.raises(ConfigError, match="loses the assistant mask"):
        encoder.encode(SftRow("a", "s", messages=(said("user", "hi"), said("assistant", "hello"))))


def test_a_template_without_an_end_token_loses_the_mask(tokenizer: BaseTokenizer) -> None:
    source = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    encoder = SftEncoder(ChatTemplate(source, SpecialTokens(())), tokenizer, "Me.", merge_system=True)
    with pytest.raises(ConfigError, match="would not learn to stop"):
        encoder.encode(SftRow("a", "s", messages=(said("user", "hi"), said("assistant", "hello"))))


def test_a_row_without_an_answer_carries_no_loss(studio: Studio) -> None:
    with pytest.raises(ConfigError, match="no token carries loss"):
        studio.sft(SftRow("a", "s", messages=(said("user", "hi"),)), "L0")


def test_both_answers_of_a_pair_follow_one_prompt(studio: Studio, tokenizer: BaseTokenizer) -> None:
    past = (said("user", "hi"), said("assistant", "hello"), said("user", "bye"))
    good, bad = (said("assistant", "See you."),), (said("assistant", "No."),)
    pair = studio.pair(PreferenceRow("a", "s", prompt=past, chosen=good, rejected=bad), "L0")
    assert "".join(map(tokenizer.text, pair.chosen)) == "See you.<|im_end|>"
    assert "".join(map(tokenizer.text, pair.rejected)) == "No.<|im_end|>"
    assert "".join(map(tokenizer.text, pair.prompt)).endswith("bye<|im_end|>\n<|im_start|>assistant\n")


def test_the_whole_label_and_the_end_of_a_route_are_learned(studio: Studio, tokenizer: BaseTokenizer) -> None:
    row = studio.route(RouteRow("a", "s", messages=(said("user", "fix it"),), label="L2"))
    assert learned_text(row, tokenizer) == "L2<|im_end|>"


def test_one_token_decides_a_route(studio: Studio, tokenizer: BaseTokenizer) -> None:
    row = studio.route(RouteRow("a", "s", messages=(said("user", "fix it"),), label="L2"))
    assert tokenizer.text(row.ids[row.learned[row.decides]]) == "2"
    assert [tokenizer.text(token) for token in row.choices] == ["0", "1", "2", "3"]
    assert whole_text(row, tokenizer).endswith(
        "<request>\nfix it\n</request><|im_end|>\n<|im_start|>assistant\nL2<|im_end|>"
    )


def test_a_route_row_is_asked_as_serving_asks_it(tiny_loaded: Loaded) -> None:
    mol = tiny_loaded.contract.mol
    template = RouteTemplate("Choose.", mol.route.shape, mol.route.prefill, mol.route_input_tokens)
    talk = (
        said("user", "hello"),
        said("assistant", "Hi   there."),
        said("user", "book it"),
        said("assistant", "", tool_calls=[CALL], label="L1"),
        said("tool", "ok", tool_call_id="c1"),
        said("assistant", "Booked.", label="L1"),
        said("user", "and <|im_end|> now"),
        said("user", "commit it"),
    )
    path = [step("L0", "t1", "Hi   there."), step("L1", "t2", ""), step("L1", "t2", "Booked.")]
    new = [Message("user", (Text("and <|im_end|> now"),)), Message("user", (Text("commit it"),))]
    served = question(template, request_text(new), context_text(path, template.input_tokens, frozenset()))
    names = {label: label for label in registry_from(tiny_loaded).labels}
    assert route_messages(template, talk, names, entry="L0", context=True) == question_messages(served)


def step(label: str, turn: str, said: str) -> Step:
    outputs = (Message("assistant", (Text(said),)),)
    return Step(
        f"{turn}{said}", "s", None, turn, "t", 0, "", "", "", label, "", "completed", "stop", 0, "", 0.0, (), outputs
    )


def test_a_label_that_nobody_has_is_refused(studio: Studio) -> None:
    with pytest.raises(ConfigError, match="label 'L7' is none of L0, L1, L2, L3"):
        studio.route(RouteRow("a", "s", messages=(said("user", "hi"),), label="L7"))


@pytest.mark.parametrize("seed", range(20))
def test_a_varied_question_names_the_right_specialist(studio: Studio, tokenizer: BaseTokenizer, seed: int) -> None:
    variant = vary(studio.registry, {"L1", "L3"}, read_cards(), random.Random(seed))
    assert 3 <= len(variant.registry.labels) <= 9
    asked = studio.question(variant.registry, variant.names)
    past = (said("user", "hi"), said("assistant", "Yes.", label="L1"))
    row = studio.route(RouteRow("a", "s", messages=(*past, said("user", "go"))[seed % 2 * 2 :], label="L3"), asked)
    shown = whole_text(row, tokenizer)
    own = next(item for item in studio.registry.specialists if item.label == "L3")
    assert f"\n{variant.names['L3']}: {own.description}\n" in shown
    assert shown.endswith(f"assistant\n{variant.names['L3']}<|im_end|>")
    assert (f"\n{variant.names['L1']}: Yes.\n" in shown) == (seed % 2 == 0)
    assert len(set(row.choices)) == len(variant.registry.labels)
