"""Mobile plans, lines and home internet."""

from __future__ import annotations

from macaron.train.demi.tools.slots import code, day, enum, number, switch, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_LINE = code("phone number of the line", "555", 7)

TOOLS = (
    Tool(
        "get_data_usage",
        "Show how much mobile data a line has used.",
        {"phone_number": _LINE, "month": enum("month", "January|February|March|April|May|June")},
        (
            "How much data has {phone_number} used[ in {month}]?",
            "Data usage of line {phone_number}[ for {month}], please.",
        ),
        asks=(Ask("How much data have I used?", "Which phone number do you mean?"),),
        done=Done({"used_gb": number("", 0.5, 30)}, "Line {phone_number} has used {used_gb} GB."),
    ),
    Tool(
        "refuel_data",
        "Add mobile data to a line.",
        {"phone_number": _LINE, "gigabytes": number("GB to add", 1, 10)},
        (
            "Add {gigabytes} GB to {phone_number}.",
            "My line {phone_number} ran out, top it up with {gigabytes} gigabytes.",
        ),
        asks=(Ask("Add more data to {phone_number}.", "How many gigabytes should I add?"),),
    ),
    Tool(
        "change_plan",
        "Move a line to another plan.",
        {"phone_number": _LINE, "plan": enum("plan", "Basic|Plus|Unlimited|Family"), "start": day("from when")},
        (
            "Switch {phone_number} to the {plan} plan[ from {start}].",
            "I'd like the {plan} plan on {phone_number}[ starting {start}].",
        ),
        asks=(
            Ask(
                "I want another plan for {phone_number}.",
                "Which plan would you like: Basic, Plus, Unlimited or Family?",
            ),
        ),
        done=Done(
            {"monthly_price": whole("", 15, 80)}, "{phone_number} is now on {plan} for ${monthly_price} a month."
        ),
    ),
    Tool(
        "set_roaming",
        "Turn roaming of a line on or off.",
        {"phone_number": _LINE, "enabled": switch("on or off", "on", "off")},
        ("Turn roaming {enabled} for {phone_number}.", "Switch {enabled} roaming on my number {phone_number}."),
    ),
    Tool(
        "suspend_line",
        "Suspend a line.",
        {
            "phone_number": _LINE,
            "days": whole("for how long", 7, 90),
            "reason": enum("why", "vacation|lost phone=lost_phone|repair"),
        },
        (
            "Suspend {phone_number} for {days} days[, reason {reason}].",
            "Please pause my line {phone_number} for {days} days.",
        ),
    ),
    Tool(
        "get_invoice",
        "Get the phone bill of a month.",
        {"customer_id": code("customer", "C", 4), "month": whole("1 to 12", 1, 12), "year": whole("year", 2024, 2026)},
        (
            "Send me the bill of customer {customer_id} for {month}/{year}.",
            "I need the invoice for month {month} of {year}, customer {customer_id}.",
        ),
        done=Done({"total": number("", 15, 120, 2)}, "The bill of {month}/{year} is ${total}."),
    ),
    Tool(
        "report_outage",
        "Report that a service does not work.",
        {
            "service": enum("what is down", "internet|television=tv|telephone=phone"),
            "postcode": code("postal code", "", 5),
            "since": text("when it began", "this morning|last night|noon|yesterday"),
        },
        (
            "My {service} at {postcode} is down[ since {since}].",
            "Report an outage: {service} in {postcode}[, out since {since}].",
        ),
        asks=(Ask("My {service} is not working.", "What is your postal code?"),),
    ),
    Tool(
        "run_speed_test",
        "Measure the speed of a line.",
        {"connection": enum("which", "wifi|cable|mobile"), "seconds": whole("how long", 10, 60, 5)},
        ("Run a speed test on my {connection}[ for {seconds} seconds].", "How fast is my {connection} connection?"),
        done=Done({"mbps": number("", 5, 300)}, "Your {connection} reaches {mbps} Mbit/s."),
    ),
    Tool(
        "book_technician",
        "Send a technician to the customer.",
        {
            "customer_id": code("customer", "C", 4),
            "date": day("visit"),
            "window": enum("time of day", "morning|afternoon|evening"),
        },
        (
            "Customer {customer_id} needs a technician on {date}[ in the {window}].",
            "Book a technician visit for {customer_id} on {date}[, {window}].",
        ),
    ),
)
