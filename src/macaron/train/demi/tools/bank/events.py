"""Shops, tickets, lessons and games, as sites offer them."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import (
    clock,
    day,
    default,
    enum,
    flag,
    made,
    money,
    number,
    record,
    several,
    switch,
    text,
    whole,
)
from macaron.train.demi.tools.spec import Ask, Tool

_TOWN = made("City and state or country, such as 'Salem, OR'.", values.town)
_SKU = made("Number of the article.", values.token)

TOOLS = (
    Tool(
        "stock_level",
        "Returns how many pieces of an article a shop has.",
        {"sku": _SKU, "store": made("City of the shop.", values.city), "size": enum("Size.", "S|M|L|XL")},
        ("How many {sku} are left[ in {store}][, size {size}]?", "Is article {sku} in stock[ at the {store} shop]?"),
        asks=(Ask("Is it in stock?", "Which article? Please give me its number."),),
    ),
    Tool(
        "change_price",
        "Sets the price of an article.",
        {"sku": _SKU, "price": money("New price in dollars.", 2, 300), "from_date": day("First day of the price")},
        ("Set the price of {sku} to {price}[ from {from_date}].", "{sku} costs {price}[ as of {from_date}]."),
    ),
    Tool(
        "reorder_article",
        "Orders more pieces of an article from the supplier.",
        {
            "sku": _SKU,
            "quantity": whole("Number of pieces.", 5, 900, 5),
            "express": default(flag("Faster and dearer.", "by express"), False),
            "supplier": made("Name of the supplier.", values.company),
        },
        (
            "Reorder {quantity} of {sku}[ from {supplier}][ {express}].",
            "We're low on {sku}, get {quantity} more[ {express}].",
        ),
    ),
    Tool(
        "find_concerts",
        "Finds concerts in a city.",
        {
            "city": _TOWN,
            "genre": enum("Kind of music.", "jazz|classical|rock|folk|electronic"),
            "date": day("Day of the concert"),
            "max_price": whole("Dollars a ticket, at most.", 20, 200, 5),
        },
        (
            "Find [{genre} ]concerts in {city}[ on {date}][ under {max_price} dollars].",
            "What can I listen to live in {city}[ on {date}]?",
        ),
    ),
    Tool(
        "reserve_seats",
        "Reserves seats for a show.",
        {
            "show": made("Name of the show.", values.title),
            "seats": whole("Number of seats.", 1, 8),
            "date": day("Day of the show"),
            "row": enum("Part of the hall.", "stalls|balcony|box"),
        },
        (
            "Reserve {seats} seats for {show} on {date}[ in the {row}].",
            "{seats} tickets for '{show}', {date}[, {row}], please.",
        ),
        asks=(Ask("Reserve {seats} seats for {show}.", "For which day?"),),
    ),
    Tool(
        "enroll_course",
        "Enrolls a person in a course.",
        {
            "student": made("Full name.", values.person),
            "course": made("Subject of the course.", values.topic),
            "level": default(enum("Level.", "beginner|intermediate|advanced"), "beginner"),
        },
        (
            "Enroll {student} in the course on {course}[ at {level} level].",
            "{student} wants to learn about {course}[ ({level})].",
        ),
    ),
    Tool(
        "find_tutor",
        "Finds a teacher for lessons.",
        {
            "subject": enum("Subject.", "piano|algebra|Spanish|chemistry|drawing"),
            "city": _TOWN,
            "online": switch("Over the internet or in person.", "online", "in person"),
            "max_rate": number("Dollars an hour, at most.", 15, 90),
        },
        (
            "Find a {subject} teacher in {city}[ for at most {max_rate} an hour].",
            "I need {subject} lessons {online} in {city}.",
        ),
    ),
    Tool(
        "roll_character",
        "Creates a character for a role-playing game.",
        {
            "name": made("Name of the character.", values.given_name),
            "class": enum("Profession.", "wizard|ranger|bard|cleric"),
            "stats": record(
                "Abilities.",
                {"strength": whole("Strength.", 3, 18), "wisdom": whole("Wisdom.", 3, 18)},
                "strength {strength} and wisdom {wisdom}",
            ),
        },
        ("Create a {class} called {name}[ with {stats}].", "My character is {name}, a {class}[, {stats}]."),
    ),
    Tool(
        "standings",
        "Returns the table of a league.",
        {
            "league": text("League.", "Northern League|Coastal Cup|Premier Handball"),
            "season": whole("Year it began.", 2005, 2025),
            "top": default(whole("Teams.", 3, 20), 10),
        },
        ("Show the table of the {league}[ in {season}][, top {top}].", "Who leads the {league}[ ({season} season)]?"),
    ),
    Tool(
        "rent_bikes",
        "Rents bicycles.",
        {
            "city": _TOWN,
            "count": whole("Number of bicycles.", 1, 9),
            "date": day("Day"),
            "pickup": clock("Time of pick-up"),
            "kinds": several("Kinds of bicycles.", enum("", "e-bike|tandem|road|cargo"), 1, 2),
        },
        (
            "Rent {count} bikes in {city} on {date}[ at {pickup}].",
            "We need {count} bicycles in {city}, {date}[, {kinds}].",
        ),
    ),
    Tool(
        "adopt_pet_search",
        "Finds animals that look for a home.",
        {
            "animal": enum("Animal.", "dog|cat|rabbit"),
            "place": _TOWN,
            "max_age": whole("Years, at most.", 1, 12),
            "good_with_kids": flag("Gentle.", "good with kids"),
        },
        (
            "Find a {animal} to adopt near {place}[, at most {max_age} years old][, {good_with_kids}].",
            "We'd love to adopt a {animal} around {place}[, {good_with_kids}].",
        ),
    ),
    Tool(
        "buy_train_pass",
        "Buys a pass for trains in China.",
        {
            "from_city": made("Start.", values.chinese_city),
            "to_city": made("End.", values.chinese_city),
            "seats": whole("Seats.", 1, 5),
        },
        ("买{seats}张从{from_city}到{to_city}的高铁票。", "从{from_city}去{to_city},{seats}个人,帮我订票。"),
    ),
)
