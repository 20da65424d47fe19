"""`POST /v1/messages/count_tokens`."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from macaron.engine.base import ChatMessage
from macaron.errors import NotSupported
from macaron.mol.identity import canonical_tools
from macaron.mol.prompt import view_messages
from macaron.mol.view import Head, view
from macaron.server.bodies import GONE, admitted
from macaron.server.receive import ClientLeft
from macaron.server.requests import check_parts
from macaron.server.respond import json_response
from macaron.server.service import Service
from macaron.wire.messages import MessagesRequest, messages_request


async def count_tokens(request: Request) -> Response:
    """Prompt tokens of a Messages request, as the engine counts them.

    Raises:
        NotSupported: the engine cannot count.
    """
    try:
        service, caller, asked = await admitted(request, partial(messages_request, counting=True))
    except ClientLeft:
        return Response(None, GONE)
    check_parts(service, asked)
    options = {"tools": list(canonical_tools(asked.tools))} if asked.tools else {}
    async with service.admission.place(caller.tenant):
        count = await service.engine.count_tokens(_shown(service, asked), options)
    if count is None:
        raise NotSupported(f"The {service.engine.kind} engine behind this model cannot count a prompt's tokens.")
    return json_response(request, {"input_tokens": count})


def _shown(service: Service, asked: MessagesRequest) -> list[ChatMessage]:
    """The conversation as the entry specialist would see it if all of it were its own. Who would answer is not known,
    and views with notes in them are shorter."""
    mol = service.contract.mol
    entry = service.registry.entry_specialist
    shown = view(Head(entry.identity, asked.system, asked.tools), (), entry.label, asked.items, {})
    return view_messages(shown, merge_system=mol.merge_system, reasoning=mol.reasoning_in_body)
