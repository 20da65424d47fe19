"""Which field a server's refusal is about, in the words of the servers."""

from __future__ import annotations

import pytest

from macaron.engine.dialect import error_from_reply
from macaron.engine.refusal import refused_field
from macaron.errors import BadRequest

FIELDS = ("temperature", "response_format", "max_tokens")


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
        ("Unrecognized request argument supplied: response_format", "response_format"),
        ("Completions.create() got an unexpected keyword argument 'response_format'", "response_format"),
        ('json: unknown field "temperature"', "temperature"),
        ("unknown field `max_tokens`, expected one of `model`, `messages`", "max_tokens"),
        ("Additional properties are not allowed ('temperature' was unexpected)", "temperature"),
        ("temperature: Extra inputs are not permitted", "temperature"),
        ("This model does not support response format `json_schema`.", "response_format"),
        ("This model does not support structured outputs.", "response_format"),
        ("This response_format type is unavailable now", "response_format"),
        ("'response_format' of type 'json_schema' is not supported with this model.", "response_format"),
        ("gateway does not support parameters: ['temperature'], for model=x", "temperature"),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'temperature'), 'msg': 'Extra inputs'}]", "temperature"),
    ],
)
def test_a_field_that_the_message_says_is_not_supported_is_found(message: str, field: str) -> None:
    assert refused_field(BadRequest(message), FIELDS) == field


@pytest.mark.parametrize(
    "message",
    [
        "temperature must be between 0 and 2",
        "Invalid value for temperature: 5 is too high",
        "Only one of max_tokens and max_completion_tokens may be set",
        "This model's context holds 100 tokens; lower max_tokens",
        "The prompt was refused: 'what is the temperature in Rome?'",
        "I do not support you. What is the temperature?",
        "Unknown parameter: 'top_p'. The temperature is fine.",
        "messages must alternate; response_format is json_schema",
    ],
)
def test_a_field_that_is_only_mentioned_is_not_refused(message: str) -> None:
    assert refused_field(BadRequest(message), FIELDS) is None


@pytest.mark.parametrize(
    ("param", "field"),
    [
        ("temperature", "temperature"),
        ("response_format.json_schema.strict", "response_format"),
        ("messages[0].content", None),
        ("top_p", None),
    ],
)
def test_the_errors_param_decides_where_there_is_one(param: str, field: str | None) -> None:
    error = BadRequest("Unknown parameter: 'max_tokens'.", param=param)
    assert refused_field(error, FIELDS) == field


def test_a_validators_report_is_read_as_the_server_sent_it() -> None:
    body = (
        b'{"detail":[{"type":"extra_forbidden","loc":["body","response_format"],'
        b'"msg":"Extra inputs are not permitted","input":{"type":"json_schema"}}]}'
    )
    error = error_from_reply(422, body)
    assert isinstance(error, BadRequest)
    assert refused_field(error, FIELDS) == "response_format"


def test_a_field_that_was_not_sent_is_not_looked_for() -> None:
    assert refused_field(BadRequest("'temperature' is not supported"), ("max_tokens",)) is None
