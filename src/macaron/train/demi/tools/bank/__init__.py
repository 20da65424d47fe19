"""Our own tools, a module a family, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from macaron.train.demi.tools.bank import (
    banking,
    calendar,
    climate,
    clinic,
    cloud,
    delivery,
    events,
    health,
    home,
    knowledge,
    markets,
    media,
    messaging,
    orders,
    records,
    repositories,
    science,
    telecom,
    travel,
    vehicles,
    web,
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
        "climate": climate.TOOLS,
        "cloud": cloud.TOOLS,
        "vehicles": vehicles.TOOLS,
        "markets": markets.TOOLS,
        "web": web.TOOLS,
        "repositories": repositories.TOOLS,
        "media": media.TOOLS,
        "records": records.TOOLS,
        "clinic": clinic.TOOLS,
        "science": science.TOOLS,
        "events": events.TOOLS,
    }
