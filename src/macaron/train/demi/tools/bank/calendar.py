"""Calendar, reminders and tasks."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import FIRST_NAMES
from macaron.train.demi.tools.slots import clock, code, day, enum, flag, several, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_TITLES = (
    "team meeting|dentist|project review|lunch with Ana|yoga class|parent evening|budget talk|book club|car service"
)
_CHORES = (
    "buy milk|call the landlord|water the plants|send the report|renew my passport|pick up the parcel|pay the rent"
)

TOOLS = (
    Tool(
        "create_event",
        "Put an event into the calendar.",
        {
            "title": text("title", _TITLES),
            "date": day("day"),
            "start": clock("start"),
            "minutes": whole("length", 15, 120, 15),
            "guests": several("first names", text("", FIRST_NAMES), 1, 3),
        },
        (
            "Put '{title}' in my calendar on {date} at {start}[ for {minutes} minutes][ and invite {guests}].",
            "Schedule {title} for {date}, {start}[, {minutes} minutes].",
            "I have {title} on {date} at {start}, add it please[ and invite {guests}].",
        ),
        asks=(
            Ask("Schedule {title} on {date}.", "At what time should {title} start?"),
            Ask("Put {title} into my calendar.", "On which day and at what time?"),
        ),
        done=Done({"event_id": code("", "EV", 4)}, "'{title}' is in your calendar on {date} at {start}."),
    ),
    Tool(
        "move_event",
        "Move an event to another day or time.",
        {"event_id": code("event", "EV", 4), "new_date": day("new day"), "new_start": clock("new start")},
        (
            "Move {event_id} to {new_date}[ at {new_start}].",
            "Event {event_id} has to be on {new_date} instead[, {new_start}].",
        ),
        asks=(Ask("Move event {event_id}.", "To which day should I move it?"),),
    ),
    Tool(
        "delete_event",
        "Delete an event.",
        {"event_id": code("event", "EV", 4), "notify": flag("tell the guests", "and tell the guests")},
        ("Delete event {event_id}[ {notify}].", "{event_id} is not happening, remove it[ {notify}]."),
    ),
    Tool(
        "list_events",
        "List the events of a day.",
        {"date": day("day"), "calendar": enum("which", "work|private|family")},
        (
            "What's on my [{calendar} ]calendar on {date}?",
            "Do I have anything on {date}?",
            "Show me the events of {date}[ from the {calendar} calendar].",
        ),
        asks=(Ask("What's on my calendar?", "For which day?"),),
        done=Done(
            {"count": whole("", 1, 6), "first": text("", _TITLES)},
            "On {date} you have {count} events, the first is {first}.",
        ),
    ),
    Tool(
        "find_free_slot",
        "Find a time when everybody is free.",
        {
            "people": several("first names", text("", FIRST_NAMES), 2, 3),
            "date": day("day"),
            "minutes": whole("length", 15, 120, 15),
        },
        (
            "When are {people} free for {minutes} minutes on {date}?",
            "Find {minutes} minutes on {date} that work for {people}.",
        ),
        done=Done({"start": clock("")}, "{people} are free at {start}."),
    ),
    Tool(
        "set_reminder",
        "Remind the user of something.",
        {
            "text": text("what", _CHORES),
            "date": day("day"),
            "time": clock("time"),
            "repeat": enum("how often", "daily|weekly|monthly"),
        },
        (
            "Remind me to {text} on {date} at {time}[, {repeat}].",
            "Set a [{repeat} ]reminder for {date}, {time}: {text}.",
        ),
        asks=(Ask("Remind me to {text}.", "When should I remind you?"),),
        done=Done({"reminder_id": code("", "RM", 3)}, "I will remind you to {text} on {date} at {time}."),
    ),
    Tool(
        "set_alarm",
        "Set an alarm.",
        {
            "time": clock("time"),
            "days": several("weekdays", text("", "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday"), 1, 3),
            "label": text("name", "gym|school|flight|early shift"),
        },
        ("Wake me at {time}[ on {days}].", "Set an alarm for {time}[ on {days}][ called {label}]."),
        asks=(Ask("Set an alarm.", "For what time?"),),
    ),
    Tool(
        "set_timer",
        "Start a countdown.",
        {"minutes": whole("length", 1, 90), "label": text("name", "pasta|tea|laundry|break|bread")},
        ("Set a {minutes} minute timer[ for {label}].", "Count down {minutes} minutes[ for the {label}]."),
    ),
    Tool(
        "add_task",
        "Add a task to a list.",
        {
            "task": text("what to do", _CHORES),
            "list_name": text("list", "errands|home|work|weekend"),
            "priority": enum("how urgent", "low|medium|high"),
            "due": day("due"),
        },
        (
            "Add '{task}' to my {list_name} list[ with {priority} priority][, due {due}].",
            "New task on {list_name}: {task}[ ({priority} priority)].",
        ),
    ),
    Tool(
        "complete_task",
        "Mark a task as done.",
        {"task_id": code("task", "T", 3)},
        ("I finished {task_id}.", "Mark task {task_id} as done.", "Tick off {task_id}, please."),
    ),
)
