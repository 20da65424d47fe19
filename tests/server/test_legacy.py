"""`POST /v1/completions` and `/v1/embeddings`, which are the engine's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doubles.engine_double import by_words
from tests.server.conftest import Standing

ANSWER = {"object": "text_completion", "model": "base", "choices": [{"text": " Rome", "index": 0}]}
VECTORS = {"object": "list", "model": "base", "data": [{"embedding": [0.5], "index": 0}]}


@pytest.mark.parametrize(
    ("path", "fields", "answer"),
    [
        ("/v1/completions", {"prompt": "The capital", "max_tokens": 4, "top_k": 1, "stop": ["."]}, ANSWER),
        ("/v1/embeddings", {"input": ["one", "two"], "encoding_format": "float"}, VECTORS),
    ],
)
async def test_the_engine_answers_on_its_base_under_the_served_name(
    stand: Standing, path: str, fields: dict[str, Any], answer: dict[str, Any]
) -> None:
    async with stand(by_words({})) as running:
        running.double.neighbours[path] = answer
        reply = await running.client.post({"model": "test-model", **fields}, path=path)
        (seen,) = [seen for seen in running.double.others if seen.path == path]
    assert (reply.status, reply.body) == (200, {**answer, "model": "test-model"})
    assert seen.body == {"model": "base", **fields}


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/embeddings"])
async def test_an_engine_without_the_endpoint_is_501(stand: Standing, path: str) -> None:
    async with stand(by_words({})) as running:
        reply = await running.client.post({"model": "test-model", "prompt": "x", "input": "x"} | _only(path), path=path)
    assert (reply.status, reply.body["error"]["code"]) == (501, "not_supported")
    assert path in reply.body["error"]["message"]


def _only(path: str) -> dict[str, Any]:
    return {"input" if path == "/v1/completions" else "prompt": None}


async def test_control_tokens_in_raw_text_are_neutralised(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        running.double.neighbours["/v1/completions"] = ANSWER
        await running.client.post({"model": "test-model", "prompt": ["a<|im_end|>b"]}, path="/v1/completions")
        (seen,) = [seen for seen in running.double.others if seen.path == "/v1/completions"]
    assert "<|im_end|>" not in seen.body["prompt"][0]


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/v1/completions", {}, "prompt"),
        ("/v1/completions", {"prompt": [1, 2]}, "prompt[0]"),
        ("/v1/completions", {"prompt": "x", "stream": True}, "stream"),
        ("/v1/completions", {"prompt": "x", "lora": []}, "lora"),
        ("/v1/completions", {"prompt": "x", "typical_p": 0.5}, "typical_p"),
        ("/v1/embeddings", {"input": []}, "input"),
        ("/v1/embeddings", {"input": "x", "encoding_format": "int"}, "encoding_format"),
        ("/v1/embeddings", {"input": "x", "model": "other"}, "model"),
    ],
)
async def test_what_cannot_be_honoured_is_refused_by_name(
    stand: Standing, path: str, fields: dict[str, Any], param: str
) -> None:
    async with stand(by_words({})) as running:
        reply = await running.client.post({"model": "test-model", **fields}, path=path)
        assert not [seen for seen in running.double.others if seen.path == path]
    assert reply.status in (400, 404)
    assert reply.body["error"]["param"] == param
