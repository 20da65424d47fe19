"""Messages, mail, calls and contacts."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import FIRST_NAMES
from macaron.train.demi.tools.slots import clock, code, enum, flag, several, switch, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_NAME = text("contact", FIRST_NAMES)
_TEXTS = (
    "I'm running late|see you tomorrow|the door code is 4471|happy birthday|call me back|"
    "the meeting is moved|I'm at the station"
)
_ADDRESS = text(
    "address", "ana@brightlake.org|office@northhill.net|j.park@studio9.io|support@fernbank.com|rita@oldmill.org"
)

TOOLS = (
    Tool(
        "send_message",
        "Send a text message to a contact.",
        {
            "to": _NAME,
            "text": text("what to write", _TEXTS),
            "app": enum("by", "WhatsApp=whatsapp|SMS=sms|Signal=signal"),
        },
        ("Text {to}: {text}.", 'Tell {to} "{text}"[ on {app}].', "Send {to} a message[ by {app}] saying {text}."),
        asks=(
            Ask("Send {to} a message.", "What should the message to {to} say?"),
            Ask('Send the message "{text}".', "Who should get it?"),
        ),
        done=Done({"status": enum("", "delivered|sent")}, "Your message to {to} was {status}."),
    ),
    Tool(
        "write_email",
        "Send an e-mail.",
        {
            "to": several("addresses", _ADDRESS, 1, 2),
            "subject": text("subject", "Invoice question|Meeting notes|Holiday request|Broken heater|Thank you"),
            "body": text(
                "text",
                "Please find the numbers attached.|Could you call me this week?|I will be away until Monday.",
            ),
            "high_priority": flag("urgent", "and mark it as urgent"),
        },
        (
            "Email {to} with the subject '{subject}' and the text '{body}'[ {high_priority}].",
            'Write a mail to {to}: subject {subject}, body "{body}"[ {high_priority}].',
        ),
        asks=(Ask("Send an email to {to} with the subject '{subject}'.", "What should the e-mail say?"),),
    ),
    Tool(
        "search_mail",
        "Search the mailbox.",
        {
            "query": text("words", "invoice|flight|contract|warranty|newsletter|tax form"),
            "sender": _ADDRESS,
            "unread": flag("only new", "that I haven't read"),
            "limit": whole("most", 3, 20),
        },
        (
            "Find mails about '{query}'[ from {sender}][ {unread}].",
            "Search my inbox for {query}[, at most {limit} results].",
        ),
        done=Done({"found": whole("", 1, 30)}, "I found {found} mails about {query}."),
    ),
    Tool(
        "call_contact",
        "Call a contact.",
        {
            "name": _NAME,
            "number_type": enum("which number", "mobile|work|home"),
            "speaker": flag("loudspeaker", "on speaker"),
        },
        ("Call {name}[ on the {number_type} number][ {speaker}].", "Ring {name}[ at {number_type}], please."),
        asks=(Ask("Make a call.", "Who should I call?"),),
    ),
    Tool(
        "add_contact",
        "Save a contact.",
        {"name": _NAME, "phone": code("number", "555", 7), "email": _ADDRESS},
        ("Save {name}'s number {phone}[ and mail {email}].", "New contact: {name}, {phone}[, {email}]."),
        asks=(Ask("Add {name} to my contacts.", "What is {name}'s phone number?"),),
    ),
    Tool(
        "mute_chat",
        "Mute a group chat.",
        {"group": text("group", "Family|Football|Neighbours|Class of 2010|Work"), "hours": whole("how long", 1, 48)},
        ("Mute the {group} group for {hours} hours.", "I don't want to hear from '{group}' for {hours} hours."),
    ),
    Tool(
        "schedule_message",
        "Send a message later.",
        {"to": _NAME, "text": text("what", _TEXTS), "time": clock("when")},
        ("At {time}, tell {to} {text}.", "Schedule a message to {to} for {time}: {text}."),
    ),
    Tool(
        "set_auto_reply",
        "Answer mails automatically.",
        {
            "enabled": switch("on or off", "on", "off"),
            "message": text("text", "I am on holiday|Back on Monday|Please call instead"),
        },
        ("Turn my auto reply {enabled}[ with '{message}'].", "Switch {enabled} automatic answers[: '{message}']."),
    ),
    Tool(
        "translate_text",
        "Translate a text.",
        {
            "text": text(
                "text", "Where is the station?|Good morning, how are you?|I would like a coffee.|The invoice is wrong."
            ),
            "target": enum("language code", "German=de|Spanish=es|French=fr|Japanese=ja|Chinese=zh"),
            "formal": flag("polite form", "in a formal tone"),
        },
        ("Translate '{text}' into {target}[ {formal}].", 'How do you say "{text}" in {target}?'),
    ),
)
