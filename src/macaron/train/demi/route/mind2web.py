"""Mind2Web tasks as inspect-evals packages them (`mind2web_sc`): what people want from travel, shop and ticket sites.

Kept are the families that the label rules name: travel, shopping and tickets for events. Browsing music, films, games
and sport results is left out, since one look-up of that kind is L0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.requests import Request, sample, single_turn, squeeze
from macaron.train.demi.route.tau2 import PACKAGE

LABEL = "L1"
FILE = "inspect_evals/mind2web_sc/data/seeact/sample_labeled_all.json"
DOMAINS = frozenset({"Travel", "Shopping"})
SUBDOMAINS = frozenset({"Event"})


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """The tasks of the kept domains, each once."""
    tasks = json.loads((context.packages.folder(PACKAGE) / FILE).read_text(encoding="utf-8"))
    kept = (
        Request(squeeze(task["confirmed_task"]), f"mind2web:{task['website']}")
        for task in tasks
        if task["domain"] in DOMAINS or task["subdomain"] in SUBDOMAINS
    )
    return single_turn("mind2web", LABEL, sample(context.random, kept, context.limit))
