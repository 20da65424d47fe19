"""Files, tables, variables and accounts of users."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import default, enum, flag, made, number, record, several, switch, text, whole
from macaron.train.demi.tools.spec import Ask, Tool

_TABLE = text("Name of the table.", "customers|orders|payments|employees|shipments|sensors")
_USER = made("Identifier of the user.", values.long_number)
_COLUMN = text("Name of the column.", "city|status|amount|country|created_at|score")

TOOLS = (
    Tool(
        "select_rows",
        "Returns rows of a table that meet a condition.",
        {
            "table": _TABLE,
            "where": record(
                "The condition.",
                {
                    "column": _COLUMN,
                    "operator": enum("Comparison.", "equals==|is greater than=>|is less than=<"),
                    "value": made("Value to compare with.", values.long_number),
                },
                "{column} {operator} {value}",
            ),
            "order_by": _COLUMN,
            "limit": default(whole("Rows at most.", 5, 500, 5), 100),
        },
        (
            "Show rows of {table} where {where}[, at most {limit}].",
            "Get me all {table} whose {where}[, sorted by {order_by}].",
        ),
    ),
    Tool(
        "insert_contact_row",
        "Adds a person to the table of customers.",
        {
            "name": made("Full name.", values.person),
            "email": made("E-mail address.", values.email),
            "phone": made("Telephone number.", values.phone),
            "newsletter": default(switch("Gets the newsletter.", "with newsletter", "no newsletter"), False),
        },
        (
            "Add {name}, {email}[, phone {phone}][, {newsletter}].",
            "New customer: {name}, mail {email}[, reachable at {phone}].",
        ),
        asks=(Ask("Add the customer {name}.", "What is the e-mail address of {name}?"),),
    ),
    Tool(
        "count_rows",
        "Counts the rows of a table, grouped by a column where one is given.",
        {"table": _TABLE, "group_by": _COLUMN},
        ("How many rows are in {table}[, by {group_by}]?", "Count {table}[ grouped by {group_by}]."),
    ),
    Tool(
        "assign_number",
        "Gives a number to a named variable.",
        {"variable": made("Name of the variable.", values.variable), "number": number("The number.", -90, 900, 2)},
        (
            "Set {variable} to {number}.",
            "{variable} = {number}",
            "Let {variable} be {number}.",
            "把{variable}设为{number}。",
        ),
    ),
    Tool(
        "assign_text",
        "Gives a text to a named variable.",
        {"variable": made("Name of the variable.", values.variable), "text": made("The text.", values.message)},
        ("Set {variable} to '{text}'.", '{variable} = "{text}"', 'Store the words "{text}" in {variable}.'),
    ),
    Tool(
        "assign_switch",
        "Turns a named setting on or off.",
        {
            "setting": made("Name of the setting.", values.variable),
            "enabled": switch("On or off.", "Enable", "Disable"),
        },
        ("{enabled} {setting}.", "{enabled} the setting {setting}, please."),
    ),
    Tool(
        "move_file",
        "Moves or renames a file.",
        {
            "source": made("Where the file is.", values.path),
            "target": made("Where it goes.", values.path),
            "overwrite": default(flag("Replace what is there.", "overwriting what is there"), False),
        },
        (
            "Move {source} to {target}[, {overwrite}].",
            "mv {source} {target}",
            "Rename {source} as {target}[ {overwrite}].",
        ),
    ),
    Tool(
        "remove_file",
        "Deletes a file.",
        {"path": made("The file.", values.path), "permanent": default(flag("Past the bin.", "for good"), False)},
        ("Delete {path}[ {permanent}].", "Get rid of {path}[ {permanent}]."),
        asks=(Ask("Delete that file.", "Which file? Please give me its path."),),
    ),
    Tool(
        "list_folder",
        "Lists the files of a folder.",
        {
            "folder": text("The folder.", "/srv/data|/home/ines|/var/reports|/tmp/upload|~/Documents"),
            "pattern": text("Only names of this form.", "*.csv|*.log|report_*|*.png"),
            "recursive": default(flag("Folders inside, too.", "including subfolders"), False),
        },
        ("What's in {folder}[, {recursive}]?", "List {folder}[ matching {pattern}][ {recursive}].", "ls {folder}"),
    ),
    Tool(
        "user_profile",
        "Returns the data of a user's account.",
        {
            "user_id": _USER,
            "fields": several("Only these data.", enum("", "name|email|plan|created|last_login"), 1, 3),
        },
        ("Get the profile of user {user_id}[, only {fields}].", "Who is user {user_id}?[ I need {fields}.]"),
    ),
    Tool(
        "reset_login",
        "Sends a user a link to set a new password.",
        {"email": made("Address of the account.", values.email), "expires_hours": default(whole("Hours.", 1, 48), 24)},
        (
            "Reset the password of {email}[, link valid for {expires_hours} hours].",
            "{email} is locked out, send a reset link.",
        ),
    ),
    Tool(
        "deactivate_user",
        "Closes a user's account, which can be opened again.",
        {"user_id": _USER, "reason": enum("Why.", "spam|left the company=left|requested by the user=requested")},
        ("Deactivate user {user_id}[ because of {reason}].", "Close the account {user_id}, reason: {reason}."),
    ),
    Tool(
        "render_chart",
        "Draws a chart of numbers.",
        {
            "kind": enum("Kind of chart.", "bar|line|pie"),
            "values": several("The numbers.", number("", 0, 99), 3, 5),
            "title": made("Title over the chart.", values.title),
        },
        ("Draw a {kind} chart of {values}[ titled '{title}'].", "Plot {values} as a {kind} chart[, title {title}]."),
    ),
)
