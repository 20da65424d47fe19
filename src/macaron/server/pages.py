"""The small endpoints: liveness, readiness, models, metrics, traces."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from macaron.conversation import Step
from macaron.errors import NotFound
from macaron.server.keys import Caller
from macaron.server.receive import header_map
from macaron.server.requests import session_id
from macaron.server.respond import json_response
from macaron.server.service import Service

SESSION_STEPS = 200


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _caller(request: Request) -> Caller:
    return _service(request).keys.authenticate(header_map(request.scope))


async def health(request: Request) -> Response:
    """Liveness: the process answers."""
    return json_response(request, {"status": "ok"})


async def here(request: Request) -> Response:
    """The empty answer to who asks whether anybody is there."""
    return Response(None, 200)


async def ready(request: Request) -> Response:
    """Readiness: 200 when engine, adapters and store are there, else 503 with the reasons."""
    service = _service(request)
    readiness = await service.readiness()
    body = {
        "status": "ready" if readiness.ready else "not ready",
        "problems": readiness.problems,
        "model": service.served,
        "engine": service.engine.kind,
        "contract": service.loaded.digest,
        "generation": service.generation,
        "prompt_only": service.registry.prompt_only,
        "specialists": [
            {"label": item.label, "name": item.name, "state": item.state, "revision": item.revision}
            for item in service.registry.specialists
        ],
    }
    return json_response(request, body, 200 if readiness.ready else 503)


async def metrics(request: Request) -> Response:
    """Numbers of the whole service, for its operator."""
    service = _service(request)
    if not service.keys.open:
        _caller(request).require("admin", "`/metrics`")
    service.metrics.load(service.admission.active, service.admission.queued)
    await asyncio.to_thread(service.metrics.tally.load_others)
    return Response(service.metrics.render(), headers={"content-type": CONTENT_TYPE_LATEST})


async def models(request: Request) -> Response:
    """The model that is served."""
    _caller(request)
    service = _service(request)
    page = {"has_more": False, "first_id": service.served, "last_id": service.served}
    return json_response(request, {"object": "list", "data": [_model(service)], **page})


async def model(request: Request) -> Response:
    """One model."""
    _caller(request)
    service, name = _service(request), request.path_params["name"]
    if not service.serves(name):
        message = f"The model `{name[:80]}` is not served here; ask for `{service.served}`."
        raise NotFound(message, param="model", code="model_not_found")
    return json_response(request, _model(service))


async def session(request: Request) -> Response:
    """The steps of a session with their hops, newest last. A session is named by its id or as its client named it."""
    service, caller = _service(request), _caller(request)
    caller.require("trace", "A trace")
    user, name = request.query_params.get("user", ""), request.path_params["session"]
    scope = f"{caller.tenant}\x1f{user}" if user else caller.tenant
    # Header values are read as Latin-1, paths as UTF-8.
    named = session_id(f"{caller.tenant}\x1f{user}", name.encode().decode("latin-1"))
    for candidate in (name, named):
        if steps := await service.store.session(scope, candidate, SESSION_STEPS):
            return json_response(request, {"session": candidate, "steps": [_step(step) for step in steps]})
    raise NotFound(f"There is no session `{name[:80]}`.", param="session", code="session_not_found")


def _model(service: Service) -> dict[str, Any]:
    """A model as OpenAI's clients know it and as Anthropic's do: no field means two things."""
    return {
        "id": service.served,
        "object": "model",
        "created": service.started,
        "owned_by": "macaron",
        "type": "model",
        "display_name": service.served,
        "created_at": datetime.fromtimestamp(service.started, UTC).isoformat().replace("+00:00", "Z"),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "id": step.id,
        "parent": step.parent,
        "turn": step.turn,
        "label": step.label,
        "revision": step.revision,
        "status": step.status,
        "finish": step.finish,
        "created": step.created,
        "generation": step.generation,
        "contract": step.contract,
        "hops": [msgspec.to_builtins(hop) for hop in step.hops],
    }
