"""Which of our own fields a server's refusal names as one that it does not know, or does not take as we send it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from macaron.errors import BadRequest

NAMES: Final = {
    "response_format": r"response[_ ]format|json_schema|structured[_ ]outputs?",
    "temperature": r"temperature",
    "max_tokens": r"max_tokens",
    "max_completion_tokens": r"max_completion_tokens",
}
"""The fields that may be left out, with the words by which servers name them."""

# `Unknown parameter: 'x'`, `Unrecognized request argument supplied: x`, `unexpected keyword argument 'x'`
_UNKNOWN: Final = (
    r"\b(?:unknown|unsupported|unrecogni[sz]ed|unexpected|extra) (?:request |keyword )?"
    r"(?:field|param|parameter|argument|property|input|option|key|value)s?(?: supplied)?:? [\"'`]?(?:NAME)\b"
)
# `'x' is not supported with this model`, `'x' of type 'y' is not supported`, `this x type is unavailable`
_NOT_TAKEN: Final = (
    r"\b(?:NAME)[\"'`]?(?: (?:of type [\"'`]?\w{1,64}[\"'`]?|type|field|parameter|argument))? (?:is|are|was|were)"
    r"(?:(?: not|n't) (?:currently |yet )?(?:supported|allowed|permitted|recogni[sz]ed|available)"
    r"| (?:currently )?(?:unsupported|unknown|unrecogni[sz]ed|unexpected|unavailable))\b"
)
# `this model does not support x`, `does not support parameters: ['x']`
_NO_SUPPORT: Final = r"\b(?:does|do)(?: not|n't) support (?:\w{1,32}:? ){0,3}[\[({]?[\"'`]?(?:NAME)\b"
# Pydantic's report, as JSON or as Python writes it, and as a sentence.
_EXTRA: Final = (
    r"\bextra_forbidden[\"'], ?[\"']loc[\"']: ?[\[(][\"']body[\"'], ?[\"'](?:NAME)[\"']"
    r"|\b(?:NAME)[\"'`]?: extra inputs are not permitted"
)
PATTERNS: Final = (_UNKNOWN, _NOT_TAKEN, _NO_SUPPORT, _EXTRA)


def refused_field(error: BadRequest, fields: Collection[str]) -> str | None:
    """The field of `fields` that the server refuses by its name, None where it complains of something else.

    The error's `param` decides where there is one. A field that is merely mentioned is not refused: messages quote what
    clients wrote, and name the fields whose values they do not like.
    """
    known = [name for name in NAMES if name in fields]
    if error.param:
        root = re.split(r"[.\[]", error.param, maxsplit=1)[0]
        return root if root in known else None
    said = error.message.lower()
    return next((name for name in known if _is_refused(NAMES[name], said)), None)


def _is_refused(name: str, said: str) -> bool:
    return any(re.search(pattern.replace("NAME", name), said) for pattern in PATTERNS)
