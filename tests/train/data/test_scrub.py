"""Personal data and secrets in rows."""

from __future__ import annotations

import string
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.train.data.scrub import scrub_row, scrub_text
from tests.train.data.making import TOOL, answered, assistant, calling, preference, route, sft, user

KEY = "sk-" + "aB3dE5gH" * 4
PERSONAL = (
    ("bob.smith+x@mail.example.com", "EMAIL"),
    ("a_b@qq.com", "EMAIL"),
    ("+1 415 555 0132", "PHONE"),
    ("+49-30-1234567", "PHONE"),
    ("(415) 555-0132", "PHONE"),
    ("415-555-0132", "PHONE"),
    ("123-456-7890", "PHONE"),
    ("1-555-123-4567", "PHONE"),
    ("13800138000", "PHONE"),
    ("138 0013 8000", "PHONE"),
    ("010-12345678", "PHONE"),
    ("4111 1111 1111 1111", "CARD"),
    ("4111111111111111", "CARD"),
    ("378282246310005", "CARD"),
    ("5555-5555-5555-4444", "CARD"),
    ("DE89 3704 0044 0532 0130 00", "IBAN"),
    ("GB82WEST12345698765432", "IBAN"),
    ("192.168.1.10", "IP"),
    ("8.8.8.8", "IP"),
    (KEY, "SECRET"),
    ("ghp_" + "a1B2" * 9, "SECRET"),
    ("AKIA" + "ABCD1234" * 2, "SECRET"),
    ("AIza" + "aB3_-" * 7, "SECRET"),
    ("hf_" + "aB3d" * 9, "SECRET"),
    ("xoxb-1234567890-abcdef", "SECRET"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.aBcDeFgHiJkL", "SECRET"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/\n==\n-----END RSA PRIVATE KEY-----", "SECRET"),
)
HARMLESS = (
    "released on 2026-11-30 at 14:05:33 as 2026.3.23, version 1.10.2",
    "pi is 3.14159265358979323846 and 1/3 is 0.3333333333333333",
    "1234567890 and 1700000000000 and 4111111111111112",
    "127.0.0.1:8080, 0.0.0.0, 255.255.255.255, 999.1.1.1, 1.2.3.4.5",
    "@decorator x@y @user, sk-learn, scikit-learn-contrib-something",
    "DE00370400440532013000 is no account, nor is ABCD1234EFGH5678IJKL",
    "5f41111111111111114ab is a hash; room 101-202; 1-800; (12) 34",
    "请在三点二十分打开第十二个文件",
)


@pytest.mark.parametrize(("value", "kind"), PERSONAL)
@pytest.mark.parametrize("around", ["{}", "my number is {}, thanks", "联系{}谢谢", "<a href='{}'>", '"{}".'])
def test_personal_data_becomes_a_placeholder(value: str, kind: str, around: str) -> None:
    assert scrub_text(around.format(value)) == around.format(f"[{kind}_1]")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert scrub_text(text) == text


def test_a_value_keeps_its_placeholder_within_a_row() -> None:
    text = "a@b.org, c@d.org, a@b.org"
    assert scrub_text(text) == "[EMAIL_1], [EMAIL_2], [EMAIL_1]"


def test_what_stands_around_a_card_or_account_stays() -> None:
    assert scrub_text("12 4111111111111111 34") == "12 [CARD_1] 34"
    assert scrub_text("GB00 DE89370400440532013000 IS MINE") == "GB00 [IBAN_1] IS MINE"


def test_a_conversation_stays_consistent_and_its_arguments_stay_json() -> None:
    arguments = '{"to":"bob@example.com", "card":4111111111111111, "ok":true, "n":[1.5,null], "a@b.org":0}'
    row = sft("1", messages=(user("mail bob@example.com"), calling(arguments), answered("sent"), assistant("done")))
    scrubbed, counts = scrub_row(row)
    assert scrubbed.messages[0]["content"] == "mail [EMAIL_1]"
    sent = msgspec.json.decode(scrubbed.messages[1]["tool_calls"][0]["function"]["arguments"])
    assert sent == {"to": "[EMAIL_1]", "card": "[CARD_1]", "ok": True, "n": [1.5, None], "[EMAIL_2]": 0}
    assert counts == {"email": 3, "card": 1}


def test_arguments_without_personal_data_keep_their_bytes() -> None:
    row = sft("1", messages=(user("bob@example.com?"), calling('{ "city" :"R\\u006fme"}')))
    scrubbed, _ = scrub_row(row)
    assert scrubbed.messages[1] == row.messages[1]


def test_arguments_that_are_no_json_are_scrubbed_as_text() -> None:
    scrubbed, _ = scrub_row(sft("1", messages=(user("?"), calling("{a@b.org"))))
    assert scrubbed.messages[1]["tool_calls"][0]["function"]["arguments"] == "{[EMAIL_1]"


def test_tools_and_both_answers_of_a_preference_are_scrubbed() -> None:
    tool = {**TOOL, "function": {**TOOL["function"], "description": "ask a@b.org"}}  # type: ignore[dict-item]
    row = preference("1", tools=(tool,), chosen=(assistant("a@b.org"),), rejected=(assistant("c@d.org"),))
    scrubbed, counts = scrub_row(row)
    assert counts == {"email": 3}
    assert (scrubbed.chosen[0]["content"], scrubbed.rejected[0]["content"]) == ("[EMAIL_1]", "[EMAIL_2]")
    assert scrubbed.tools[0]["function"]["description"] == "ask [EMAIL_1]"


def test_a_row_without_personal_data_is_the_same_row() -> None:
    row = route("1", "what is new?")
    assert scrub_row(row) == (row, {})


PIECES = st.one_of(
    st.sampled_from([value for value, _ in PERSONAL]),
    st.text(alphabet=string.ascii_letters + string.digits + " .,-+()@[]中", max_size=12),
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_scrubbing_again_changes_nothing(text: str) -> None:
    once = scrub_text(text)
    assert scrub_text(once) == once


@given(st.text(alphabet=string.ascii_letters + " .,;:!?'\"()[]{}<>=*/\\\n中文é", max_size=200))
def test_text_without_digits_and_at_signs_is_never_changed(text: str) -> None:
    assert scrub_text(text) == text


@pytest.mark.parametrize(
    "unit",
    ["a", "1", "4 ", "AA00", "+1 ", "1.", "a@", "a.a@a.", "sk-", "eyJaaaaaaaa.", "-----BEGIN ", "0123 ", "(", "41-"],
)
def test_a_hostile_text_takes_no_long_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    started = time.process_time()
    scrub_text(text)
    assert time.process_time() - started < 5
