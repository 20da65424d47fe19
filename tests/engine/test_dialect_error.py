from __future__ import annotations

import json
from typing import Any

import pytest

from macaron.engine.dialect import error_from_reply
from macaron.errors import BadRequest, ContextOverflow, EngineError, EngineTimeout, MacaronError, Unavailable


def reply(status: int, payload: Any, **more: Any) -> MacaronError:
    return error_from_reply(status, json.dumps(payload).encode(), **more)


@pytest.mark.parametrize(
    "payload",
    [
        {"error": {"message": "tools[0] is wrong", "type": "BadRequestError", "code": 400, "param": None}},
        {"error": "tools[0] is wrong"},
        {"object": "error", "message": "tools[0] is wrong", "code": 400},
        {"detail": "tools[0] is wrong"},
        "tools[0] is wrong",
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_the_engines_words_about_the_request_reach_the_client(status: int, payload: Any) -> None:
    error = reply(status, payload)
    assert type(error) is BadRequest
    assert error.message == "tools[0] is wrong"


def test_the_field_and_the_code_an_engine_names_are_kept() -> None:
    error = reply(400, {"error": {"message": "no", "param": "tools", "code": "invalid_value"}})
    assert (error.param, error.code) == ("tools", "invalid_value")


def test_a_field_is_named_without_its_place_in_the_http_request() -> None:
    assert reply(400, {"error": {"message": "too long", "param": "body.stop", "code": 400}}).param == "stop"


def test_a_numeric_code_is_no_code_for_a_program() -> None:
    assert reply(400, {"error": {"message": "no", "code": 400}}).code is None


def test_validation_details_are_shown_as_they_are() -> None:
    assert '"tools"' in reply(422, {"detail": [{"loc": ["body", "tools"], "msg": "bad"}]}).message


def test_a_refusal_without_words_says_so() -> None:
    assert "does not say why" in error_from_reply(400, b"").message


def test_a_very_long_refusal_is_clipped() -> None:
    assert len(error_from_reply(400, b"x" * 1_000_000).message) == 2000


LLAMACPP = {
    "error": {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9001,
        "n_ctx": 8192,
    }
}


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("payload", "asked", "limit"),
    [
        (LLAMACPP, 9001, 8192),
        (
            said(
                "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens (2900 in the "
                "messages, 100 in the completion). Please reduce the length of the messages or completion."
            ),
            3000,
            2048,
        ),
        (said("The decoder prompt (length 3000) is longer than the maximum model length of 2048."), 3000, 2048),
        (
            said(
                "You passed 2049 input tokens and requested 1 output tokens. However, the model's context length is "
                "only 2048 tokens, resulting in a maximum input length of 2047 tokens."
            ),
            2049,
            2048,
        ),
        (
            {
                "object": "error",
                "message": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            },
            5000,
            4096,
        ),
        (
            said(
                "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a "
                "total of 5000 tokens: 4900 tokens from the input messages and 100 tokens for the completion."
            ),
            5000,
            4096,
        ),
        (
            said(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                code="context_length_exceeded",
                type="invalid_request_error",
            ),
            9000,
            8192,
        ),
    ],
    ids=["llama.cpp", "vllm", "vllm-prompt", "vllm-passed", "sglang", "sglang-total", "openai"],
)
def test_a_prompt_that_does_not_fit_is_an_overflow_with_its_numbers(payload: Any, asked: int, limit: int) -> None:
    error = reply(400, payload)
    assert type(error) is ContextOverflow
    assert error.code == "context_length_exceeded"
    assert f"maximum context length of {limit} tokens; it needs {asked}" in error.message


def test_an_overflow_is_about_the_messages_whatever_the_engine_calls_them() -> None:
    """In the words of vLLM 0.32, which stops counting behind its limit."""
    words = (
        "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens, "
        "which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
        "(parameter=input_tokens, value=2049)"
    )
    error = reply(400, said(words, type="BadRequestError", param="input_tokens", code=400))
    assert type(error) is ContextOverflow
    assert error.param == "messages"
    assert "length of 2048 tokens; it needs 2049" in error.message


def test_an_overflow_without_numbers_is_one_too() -> None:
    assert isinstance(reply(400, said("too much", code="context_length_exceeded")), ContextOverflow)


def test_more_room_than_the_model_has_is_no_overflow() -> None:
    words = "max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer output tokens."
    error = reply(400, said(words, type="BadRequestError", param="max_tokens", code=400))
    assert type(error) is BadRequest
    assert error.param == "max_tokens"


def test_only_the_room_for_the_answer_being_too_large_is_no_overflow() -> None:
    error = reply(
        400,
        said(
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 2048 "
            "tokens and your request has 20 input tokens (32000 > 2048 - 20)."
        ),
    )
    assert type(error) is BadRequest


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, EngineError), (402, EngineError), (403, EngineError), (404, EngineError), (405, EngineError),
     (408, EngineTimeout), (429, Unavailable), (500, EngineError), (502, EngineError), (503, Unavailable),
     (504, EngineTimeout)],
)  # fmt: skip
def test_what_concerns_the_services_own_access_is_never_the_clients(status: int, kind: type[MacaronError]) -> None:
    error = reply(status, said("whatever", type="invalid_request_error", code="context_length_exceeded"))
    assert type(error) is kind
    assert error.status >= 500


@pytest.mark.parametrize("status", [429, 503])
def test_when_to_try_again_is_passed_on(status: int) -> None:
    assert reply(status, said("later"), retry_after=7.0).retry_after == 7.0


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_quoted(status: int) -> None:
    error = reply(status, said("Incorrect API key provided: sk-secret"))
    assert "sk-secret" not in error.message
    assert "engine.api_key_env" in error.message


def test_a_missing_model_tells_the_operator_what_to_check() -> None:
    error = reply(404, said("The model `L9` does not exist."))
    assert error.detail is not None
    assert "L9" in error.detail
    assert "engine.base_model" in error.detail
    assert "L9" not in error.message


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[" * 100_000, b'{"error":' * 900 + b"1" + b"}" * 900, b"null", b"[1]"])
def test_no_body_breaks_the_reading_of_an_error(body: bytes) -> None:
    assert isinstance(error_from_reply(500, body), EngineError)
    assert isinstance(error_from_reply(400, body), BadRequest)
