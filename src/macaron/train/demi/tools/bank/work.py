"""Tickets, files, people and bookings at work; tickets for shows."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import CITIES, FIRST_NAMES, PEOPLE
from macaron.train.demi.tools.slots import clock, code, day, enum, flag, number, several, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

TOOLS = (
    Tool(
        "create_ticket",
        "Open a support ticket.",
        {
            "title": text("what is wrong", "printer jams|VPN drops|cannot log in|screen flickers|mail bounces"),
            "priority": enum("how urgent", "low|normal|high|critical"),
            "assignee": text("who", FIRST_NAMES),
        },
        (
            "Open a {priority} ticket: {title}[, assign it to {assignee}].",
            "Create a ticket titled '{title}' with {priority} priority[ for {assignee}].",
        ),
        asks=(
            Ask("Create a ticket titled '{title}'.", "Which priority should it have: low, normal, high or critical?"),
        ),
        done=Done({"ticket_id": code("", "TCK-", 4)}, "Ticket {ticket_id} is open: {title}."),
    ),
    Tool(
        "close_ticket",
        "Close a support ticket.",
        {"ticket_id": code("ticket", "TCK-", 4), "resolution": enum("result", "fixed|duplicate|won't fix=wontfix")},
        ("Close {ticket_id} as {resolution}.", "{ticket_id} can be closed: {resolution}."),
    ),
    Tool(
        "reserve_room",
        "Book a meeting room.",
        {
            "room": text("room", "Atlas|Birch|Comet|Dune"),
            "date": day("day"),
            "start": clock("from", high=13),
            "end": clock("to", low=13),
            "equipment": several("needs", text("", "projector|whiteboard|video system"), 1, 2),
        },
        (
            "Book room {room} on {date} from {start} to {end}[ with a {equipment}].",
            "I need {room} on {date}, {start} to {end}.",
        ),
        asks=(Ask("Book room {room} on {date}.", "From when to when do you need the room?"),),
    ),
    Tool(
        "request_leave",
        "Ask for days off.",
        {
            "start_date": day("first day"),
            "end_date": day("last day", end=True),
            "kind": enum("kind", "vacation|sick leave=sick|parental leave=parental|unpaid leave=unpaid"),
        },
        ("I'd like {kind} from {start_date} to {end_date}.", "Request {kind}: {start_date} until {end_date}."),
        asks=(Ask("I'd like to request {kind}.", "From which day to which day?"),),
        done=Done({"days_left": whole("", 2, 25)}, "Your {kind} is requested; you have {days_left} days left."),
    ),
    Tool(
        "log_hours",
        "Record working time on a project.",
        {
            "project": text("project", "Orion|Lighthouse|Redwood|Website"),
            "hours": number("hours", 0.5, 9),
            "date": day("day"),
        },
        ("Log {hours} hours on {project}[ for {date}].", "I worked {hours} hours on {project}[ on {date}]."),
    ),
    Tool(
        "find_employee",
        "Look up a colleague.",
        {
            "name": text("full name", PEOPLE),
            "field": enum("what to show", "phone number=phone|e-mail=email|department|manager"),
        },
        ("What is the {field} of {name}?", "Look up {name}'s {field}."),
    ),
    Tool(
        "share_file",
        "Share a file with people.",
        {
            "path": text("file", "/reports/q3.pdf|/plans/budget.xlsx|/drafts/offer.docx|/photos/site.png"),
            "people": several("first names", text("", FIRST_NAMES), 1, 3),
            "permission": enum("right", "read|write|comment"),
        },
        ("Share {path} with {people}[ with {permission} access].", "Give {people} [{permission} ]access to {path}."),
        asks=(Ask("Share {path}.", "With whom should I share it?"),),
    ),
    Tool(
        "search_files",
        "Search files by words.",
        {
            "query": text("words", "budget|contract|floor plan|invoice 2025|logo"),
            "extension": enum("type", "pdf|docx|xlsx|png"),
            "modified_after": day("changed since"),
        },
        (
            "Find [{extension} ]files about '{query}'[ changed after {modified_after}].",
            "Where is the file with '{query}'[ from after {modified_after}]?",
        ),
    ),
    Tool(
        "file_expense",
        "Hand in an expense.",
        {
            "amount": number("dollars", 5, 400, 2),
            "category": enum("kind", "travel|meals|hotel|equipment"),
            "date": day("day"),
            "receipt_id": code("receipt", "RC", 5),
        },
        (
            "File {amount} dollars for {category} on {date}[, receipt {receipt_id}].",
            "Expense: {category}, ${amount}, {date}[ (receipt {receipt_id})].",
        ),
    ),
    Tool(
        "find_events",
        "Find shows in a city.",
        {
            "city": text("city", CITIES),
            "kind": enum(
                "what", "concerts=concert|theatre plays=theater|football matches=football|exhibitions=exhibition"
            ),
            "date": day("day"),
        },
        ("What {kind} are on in {city}[ on {date}]?", "Find {kind} in {city}[ for {date}]."),
    ),
    Tool(
        "buy_tickets",
        "Buy tickets for a show.",
        {
            "event": text("show", "Swan Lake|Jazz Night|Hamlet|City Derby|Modern Art Week"),
            "count": whole("how many", 1, 6),
            "date": day("day"),
            "wheelchair": flag("accessible", "with a wheelchair place"),
        },
        (
            "Buy {count} tickets for {event} on {date}[ {wheelchair}].",
            "I'd like {count} tickets to see {event} on {date}.",
        ),
        asks=(Ask("Buy {count} tickets for {event}.", "For which day?"),),
        done=Done({"total": whole("", 20, 400)}, "{count} tickets for {event} cost ${total} together."),
    ),
    Tool(
        "renew_book",
        "Renew a library book.",
        {
            "card": code("library card", "L", 6),
            "title": text("book", "Dune|Emma|Ulysses|The Trial|Beloved"),
            "weeks": whole("how long", 1, 4),
        },
        (
            "Renew '{title}' on card {card}[ for {weeks} weeks].",
            "Extend my loan of {title}, card {card}[, {weeks} weeks].",
        ),
    ),
)
