"""One request said in many ways: plainly, politely, tersely, among other sentences, and as a command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from macaron.train.demi.tools.spec import Spoken, Tool, speak

_POLITE = (
    "Could you {}?|Can you {} for me?|Please {}.|I'd like you to {}.|Would you {}, please?|I need you to {}.|"
    "Can you please {}?|Go ahead and {}.|I want you to {}|Let's {}.|Hey, {}!|You should {} now.|Kindly {}."
)
_BEFORE = (
    "Hi there!|Hello,|Good morning.|I have a quick question.|Sorry to bother you again.|I'm in a bit of a hurry.|"
    "My colleague asked me about this.|I was just talking about it with my sister.|It's been a long week.|"
    "I'm back from lunch.|We're getting ready for next month.|I couldn't find it on the website.|Next thing:|"
    "I tried this on my phone and it didn't work.|Now something else.|Okay, thanks for the last one.|Hey,|"
    "I don't know much about these things.|There was a mix-up yesterday.|This came up in our meeting.|"
    "I've been putting this off for days.|So here is what I need.|As we discussed:|Before I forget it:"
)
_AFTER = (
    "Thanks!|Thank you.|That would help a lot.|Nothing else for now.|No rush.|I'll wait.|Take your time.|"
    "I appreciate it.|Let me know how it goes.|It's important to me.|That's all I need today.|Cheers"
)
_VERBS = (
    "Find|Show|Set|Compute|Book|Get|Give|Put|Tell|Open|Send|Add|Look|List|Switch|Log|Calculate|Close|Create|Check|Cancel|"
    "Reserve|Turn|Schedule|Move|Count|Play|Make|Convert|Rent|Report|Run|Delete|Search|Solve|Read|Draw|Cut|Record|Freeze|Pay|"
    "Start|Return|Swap|Change|Apply|Rate|Compare|Plan|Suspend|Remind|Wake|Mark|Refill|Order|Track|Ship|Write|Call|Save|Mute|"
    "Translate|Heat|Vacuum|Request|Share|Buy|Renew|Extend|Factor|Roll|Throw|Define|Launch|Stop|Shut|Resize|Scale|Deploy|"
    "Revert|Copy|Back|Ping|Charge|Locate|Assign|Estimate|Flash|Withdraw|Alert|Price|Invoice|Shorten|Geocode|Merge|Trigger|"
    "Release|Tag|Invite|Star|Queue|Suggest|Crop|Clip|Post|Publish|Store|Rename|Reset|Deactivate|Plot|Enroll|Reorder|Fit|Store"
)


def phrase(tool: Tool, random: Random) -> Spoken:
    """A request to `tool`, and the values it gives."""
    spoken = speak(tool, random.choice(tool.requests), random)
    if not spoken.request.isascii():
        return spoken
    style = random.random()
    if style < 0.07 and (command := _command(tool, spoken)):
        return Spoken(command, spoken.said)
    request = _polite(spoken.request, random) if random.random() < 0.35 else spoken.request
    if style < 0.17:
        return Spoken(_terse(request), spoken.said)
    if style < 0.5:
        request = _among(request, random)
    return Spoken(request, spoken.said)


def _polite(request: str, random: Random) -> str:
    verb, _, rest = request.partition(" ")
    # Only one sentence that commands can become part of another one.
    if verb not in _VERBS.split("|") or not rest.endswith(".") or any(mark in rest for mark in (". ", "? ", "! ")):
        return request
    return random.choice(_POLITE.split("|")).replace("{}", f"{verb.lower()} {rest[:-1]}")


def _among(request: str, random: Random) -> str:
    """With one to three sentences around it that no tool needs."""
    before = random.sample(_BEFORE.split("|"), random.choice((1, 1, 1, 2, 3)))
    # What ends in a comma or colon leads over to the request.
    before.sort(key=lambda sentence: sentence.endswith((",", ":")))
    leads = [sentence for sentence in before[:-1] if not sentence.endswith((",", ":"))] + before[-1:]
    after = [random.choice(_AFTER.split("|"))] if random.random() < 0.4 else []
    return " ".join([*leads, request, *after])


def _terse(request: str) -> str:
    text = request.rstrip(".?!")
    first = text.split(" ", 1)[0]
    return text[0].lower() + text[1:] if first.isalpha() and first.istitle() and first != "I" else text


def _command(tool: Tool, spoken: Spoken) -> str:
    """The tool's name in words and its parameters, as people write in a chat with a bot."""
    values = {name: said.value for name, said in spoken.said.items()}
    if not values or any(isinstance(value, dict) for value in values.values()):
        return ""
    return f"{tool.name.replace('_', ' ')}: " + ", ".join(_parts(values))


def _parts(values: Mapping[str, Any]) -> list[str]:
    return [
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    ]
