"""Requests of any wire format as turns, checked against what this service and its engine can do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from macaron.conversation import Item, Media, Message, ToolResult
from macaron.errors import BadRequest, NotFound
from macaron.mol.lookup import TurnRequest
from macaron.server.keys import Caller
from macaron.server.service import Service
from macaron.wire.chat_options import VENDOR_OPTIONS
from macaron.wire.parts import MEDIA_FIELDS, TurnParts

SESSION_HEADERS: tuple[bytes, ...] = (b"x-session-id", b"session-id", b"x-conversation-id")
MAX_SESSION_NAME = 256


def turn_request(
    service: Service,
    caller: Caller,
    parts: TurnParts,
    headers: Mapping[bytes, bytes],
    prefix: str,
    session_headers: Sequence[bytes] = SESSION_HEADERS,
) -> TurnRequest:
    """The turn that a request asks for.

    Args:
        prefix: what the response's id begins with.
        session_headers: where a client may name its session; the first that is sent counts.

    Raises:
        NotFound: the model is not served here.
        BadRequest: the engine cannot honour an option or a kind of content.
        Forbidden: the key may not pin a specialist.
    """
    check_parts(service, parts)
    pin = headers.get(b"x-macaron-adapter")
    if pin is not None:
        caller.require("pin", "`x-macaron-adapter`")
    scope = f"{caller.tenant}\x1f{parts.user}"
    return TurnRequest(
        id=service.ids.new(prefix),
        tenant=caller.tenant,
        user=parts.user,
        system=parts.system,
        items=parts.items,
        tools=parts.tools,
        options=parts.options,
        stream=parts.stream,
        n=parts.n,
        session=_session(scope, headers, session_headers, parts.session),
        pin=pin.decode("latin-1") if pin is not None else None,
        beside_results=parts.beside_results,
    )


def check_parts(service: Service, parts: TurnParts) -> None:
    """Refuse what this service or its engine cannot do.

    Raises:
        NotFound: the model is not served here.
        BadRequest: the engine cannot honour an option or a kind of content.
    """
    check_model(service, parts.model)
    check_options(service, parts.options)
    _check_media(service, (*parts.system, *parts.items))


def check_model(service: Service, model: str) -> None:
    """Raise `NotFound` where a model is not served here."""
    if not service.serves(model):
        message = f"The model `{model[:80]}` is not served here; ask for `{service.served}`."
        raise NotFound(message, param="model", code="model_not_found")


def session_id(scope: str, name: str) -> str:
    """The id of a session that a client named: the same name in another scope is another session."""
    return "sess_" + hashlib.sha256(f"{scope}\x1f{name}".encode()).hexdigest()[:32]


def _session(scope: str, headers: Mapping[bytes, bytes], names: Sequence[bytes], named: str) -> str | None:
    for header in names:
        if value := headers.get(header):
            if len(value) > MAX_SESSION_NAME:
                name = header.decode()
                raise BadRequest(f"`{name}` is longer than {MAX_SESSION_NAME} characters.", param=name)
            return session_id(scope, value.decode("latin-1"))
    return session_id(scope, named) if named else None


def check_options(service: Service, options: Mapping[str, Any]) -> None:
    """Raise `BadRequest` for an option that the engine cannot honour."""
    capabilities = service.engine.capabilities
    for name in options:
        if name in VENDOR_OPTIONS and name not in capabilities.extra_options:
            raise BadRequest(
                f"`{name}` is not understood by the {service.engine.kind} engine behind this model.",
                param=name,
                code="unsupported_parameter",
            )
    if options.get("logprobs") and not capabilities.logprobs:
        raise BadRequest("The engine gives no log-probabilities.", param="logprobs", code="unsupported_parameter")


def _check_media(service: Service, items: tuple[Item, ...]) -> None:
    for item in items:
        if isinstance(item, Message | ToolResult):
            for part in item.parts:
                if isinstance(part, Media):
                    _check_part(service, part)


def _check_part(service: Service, part: Media) -> None:
    if not service.engine.capabilities.media:
        raise BadRequest(
            f"The model reads text only; leave the `{part.kind}` part out.",
            param="messages",
            code="unsupported_content",
        )
    field = MEDIA_FIELDS[part.kind][0]
    content = part.raw[part.kind][field]
    hosts = service.contract.engine.media_hosts
    # The content of sound is no address but bare base64.
    if ":" in content if field == "data" else not _allowed(content, hosts):
        raise BadRequest(
            "Only `data:` URLs are passed to the engine; send the content itself.",
            param=f"{part.kind}.{field}",
            code="url_not_allowed",
        )


def _allowed(url: str, hosts: tuple[str, ...]) -> bool:
    if url.startswith("data:"):
        return True
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    return scheme == "https" and host in hosts
