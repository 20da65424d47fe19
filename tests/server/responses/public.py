"""The public shapes of responses and events, as packages of other people have them: `openresponses-types` and `openai`.

The first knows neither custom tools nor namespaces nor `reasoning_text` events; the second knows all of them.
"""

from __future__ import annotations

from typing import Any

import openresponses_types
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def _by_type() -> dict[str, type[BaseModel]]:
    models = [
        getattr(openresponses_types, name) for name in dir(openresponses_types) if name.endswith("StreamingEvent")
    ]
    return {model.model_json_schema()["properties"]["type"].get("default") or _const(model): model for model in models}


def _const(model: type[BaseModel]) -> str:
    schema = model.model_json_schema()
    kind = schema["properties"]["type"]
    if "$ref" in kind:
        kind = schema["$defs"][kind["$ref"].rpartition("/")[2]]
    name: str = kind.get("const") or kind["enum"][0]
    return name


OPEN = _by_type()


def _is_open(body: dict[str, Any]) -> bool:
    """Whether Open Responses has all that is in a response."""
    return all(tool["type"] == "function" for tool in body["tools"]) and all(map(_item_is_open, body["output"]))


def _item_is_open(item: dict[str, Any]) -> bool:
    return item["type"] in ("message", "function_call", "reasoning")


def check_response(body: dict[str, Any]) -> None:
    """Fail where a response object has not the public shape."""
    Response.model_validate(body)
    if _is_open(body):
        openresponses_types.ResponseResource.model_validate(_without_schema(body))
    assert all(item["id"] and item["status"] for item in body["output"])


def _without_schema(body: dict[str, Any]) -> dict[str, Any]:
    """Open Responses has a schema repeated as null only, unlike its own examples and the public API."""
    text = body["text"]
    form = {**text["format"], "schema": None} if text["format"]["type"] == "json_schema" else text["format"]
    return {**body, "text": {**text, "format": form}}


def check_event(event: dict[str, Any]) -> None:
    """Fail where an event has not the public shape."""
    EVENT.validate_python(event)
    if "response" in event:
        check_response(event["response"])
    open_to_it = (
        _is_open(event["response"]) if "response" in event else _item_is_open(event.get("item", {"type": "message"}))
    )
    if event["type"] in OPEN and open_to_it:
        shown = {**event, "response": _without_schema(event["response"])} if "response" in event else event
        OPEN[event["type"]].model_validate(shown)
