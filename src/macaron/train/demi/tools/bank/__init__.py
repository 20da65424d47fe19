"""Our own tools, a module a family, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from macaron.train.demi.tools.bank import (
    banking,
    calendar,
    delivery,
    health,
    home,
    knowledge,
    messaging,
    orders,
    telecom,
    travel,
    work,
)
from macaron.train.demi.tools.spec import Tool


def families() -> Mapping[str, Sequence[Tool]]:
    """The tools by family, in a fixed order."""
    return {
        "banking": banking.TOOLS,
        "orders": orders.TOOLS,
        "travel": travel.TOOLS,
        "telecom": telecom.TOOLS,
        "calendar": calendar.TOOLS,
        "health": health.TOOLS,
        "delivery": delivery.TOOLS,
        "messaging": messaging.TOOLS,
        "home": home.TOOLS,
        "work": work.TOOLS,
        "knowledge": knowledge.TOOLS,
    }
