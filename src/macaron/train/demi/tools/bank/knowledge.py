"""Calculations, units and look-ups, as assistants are often given."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import CITIES
from macaron.train.demi.tools.slots import day, enum, flag, number, several, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_LENGTHS = "kilometers|miles|meters|feet|inches|centimeters|yards"

TOOLS = (
    Tool(
        "convert_unit",
        "Convert a length between units.",
        {"value": number("length", 1, 500), "from_unit": enum("unit", _LENGTHS), "to_unit": enum("unit", _LENGTHS)},
        ("Convert {value} {from_unit} to {to_unit}.", "How many {to_unit} are {value} {from_unit}?"),
        asks=(Ask("Convert {value} {from_unit}.", "To which unit?"),),
    ),
    Tool(
        "calculate_percentage",
        "Compute a percentage of a number.",
        {"percent": number("percent", 1, 90), "of": whole("number", 20, 5000, 10)},
        ("What is {percent}% of {of}?", "Calculate {percent} percent of {of}."),
        done=Done({"result": number("", 1, 900)}, "{percent}% of {of} is {result}."),
    ),
    Tool(
        "rectangle_area",
        "Compute the area of a rectangle.",
        {
            "width": number("width", 1, 60),
            "height": number("height", 1, 60),
            "unit": enum("unit", "meters|feet|centimeters"),
        },
        (
            "What is the area of a rectangle {width} by {height}[ {unit}]?",
            "A room is {width} wide and {height} long[, in {unit}]. How large is it?",
        ),
    ),
    Tool(
        "circle_circumference",
        "Compute the circumference of a circle.",
        {"radius": number("radius", 1, 80), "digits": whole("places", 1, 5)},
        (
            "Find the circumference of a circle with a radius of {radius}[, rounded to {digits} digits].",
            "How long is the edge of a circle of radius {radius}?",
        ),
    ),
    Tool(
        "solve_linear",
        "Solve the equation a*x + b = 0.",
        {"a": whole("factor", 2, 40), "b": whole("constant", 1, 60)},
        ("Solve {a}x + {b} = 0.", "For which x is {a} * x + {b} zero?"),
    ),
    Tool(
        "quadratic_roots",
        "Find the roots of a*x^2 + b*x + c.",
        {
            "a": whole("of x^2", 1, 9),
            "b": whole("of x", 1, 40),
            "c": whole("constant", 1, 30),
            "root_type": enum("which", "real|all"),
        },
        (
            "Find the roots of the quadratic equation with a={a}, b={b} and c={c}.",
            "Solve {a}x^2 + {b}x + {c} = 0[ and give me the {root_type} roots].",
        ),
    ),
    Tool(
        "factor_number",
        "Find the prime factors of a number.",
        {"n": whole("number", 12, 9999), "with_powers": flag("grouped", "with their powers")},
        ("What are the prime factors of {n}[ {with_powers}]?", "Factor {n} into primes[ {with_powers}]."),
    ),
    Tool(
        "greatest_common_divisor",
        "Find the greatest common divisor of two numbers.",
        {"a": whole("first", 4, 900), "b": whole("second", 4, 900)},
        ("What is the greatest common divisor of {a} and {b}?", "GCD of {a} and {b}?"),
    ),
    Tool(
        "average",
        "Compute the mean of numbers.",
        {"numbers": several("numbers", whole("", 1, 99), 3, 6), "weights": several("weights", whole("", 1, 9), 3, 3)},
        ("What's the average of {numbers}?", "Compute the mean of {numbers}."),
        asks=(Ask("Compute the average, please.", "Of which numbers?"),),
    ),
    Tool(
        "roll_dice",
        "Roll dice.",
        {"count": whole("dice", 1, 6), "sides": enum("kind", "six-sided=d6|twenty-sided=d20|eight-sided=d8")},
        ("Roll {count} {sides} dice.", "Throw {count} {sides} dice for me."),
    ),
    Tool(
        "free_fall_speed",
        "Compute the speed of a falling object.",
        {
            "height": number("metres", 2, 300),
            "initial_speed": number("m/s", 1, 20),
            "gravity": number("m/s^2", 1, 12, 2),
        },
        (
            "How fast is a stone after falling {height} meters[ if gravity is {gravity} m/s^2]?",
            "Calculate the final speed of an object dropped from {height} m[ at first {initial_speed} m/s fast].",
        ),
    ),
    Tool(
        "compound_interest",
        "Compute what an investment grows to.",
        {
            "principal": whole("dollars", 500, 20000, 500),
            "rate": number("yearly rate as a fraction", 0.01, 0.12, 2),
            "years": whole("years", 1, 30),
            "times_per_year": whole("how often interest is added", 1, 12),
        },
        (
            "What are {principal} dollars worth after {years} years at {rate}[, paid {times_per_year} times a year]?",
            "Calculate compound interest on ${principal} with rate {rate} for {years} years.",
        ),
    ),
    Tool(
        "days_between",
        "Count the days between two dates.",
        {"start": day("first"), "end": day("second", end=True), "inclusive": flag("count both", "including both days")},
        (
            "How many days are there between {start} and {end}[ {inclusive}]?",
            "Count the days from {start} to {end}[ {inclusive}].",
        ),
        done=Done({"days": whole("", 3, 600)}, "There are {days} days between {start} and {end}."),
    ),
    Tool(
        "world_time",
        "Tell the local time of a city.",
        {"city": text("city", CITIES), "format": enum("format", "24-hour=24h|12-hour=12h")},
        ("What time is it in {city}?", "Tell me the time in {city}[ in {format} format]."),
        done=Done({"time": enum("", "09:15|14:40|18:05|22:30")}, "It is {time} in {city}."),
    ),
    Tool(
        "count_inhabitants",
        "Look up how many people live in a place.",
        {"place": text("city", CITIES), "year": whole("year", 1990, 2025)},
        ("How many people live in {place}?", "What was the population of {place}[ in {year}]?"),
    ),
    Tool(
        "search_books",
        "Search books.",
        {
            "author": text("author", "Ursula Le Guin|Jane Austen|Haruki Murakami|Chinua Achebe|Italo Calvino"),
            "genre": enum("genre", "novel|essay|poetry|short stories=short_stories"),
            "year_from": whole("not older than", 1950, 2015, 5),
        },
        (
            "Find [{genre} ]books by {author}[ from {year_from} or later].",
            "Which books did {author} write[ since {year_from}]?",
        ),
    ),
    Tool(
        "movie_showtimes",
        "Find when a film is shown.",
        {
            "title": text("film", "The Long River|Paper Moon|Silent Orbit|Night Train|Glass City"),
            "city": text("city", CITIES),
            "date": day("day"),
            "format": enum("format", "IMAX=imax|3D=3d|regular"),
        },
        ("When is '{title}' shown in {city}[ on {date}]?", "Showtimes for {title} in {city}[ in {format}]?"),
        asks=(Ask("When is '{title}' on?", "In which city?"),),
    ),
    Tool(
        "sports_score",
        "Look up the result of a team's match.",
        {
            "team": text("team", "Lakers|Arsenal|Bayern Munich|Red Sox|Barcelona|Maple Leafs"),
            "date": day("day"),
            "include_stats": flag("details", "with statistics"),
        },
        ("How did {team} play[ on {date}][, {include_stats}]?", "What was the score of the {team} game[ on {date}]?"),
    ),
    Tool(
        "define_word",
        "Look up the meaning of a word.",
        {
            "word": text("word", "serendipity|ubiquitous|ephemeral|candid|lucid|tenacious"),
            "language": enum("code", "English=en|German=de|French=fr"),
        },
        ("What does '{word}' mean?", "Define {word}[ in {language}]."),
    ),
    Tool(
        "random_password",
        "Make a password.",
        {
            "length": whole("characters", 8, 32),
            "symbols": flag("special characters", "with special characters"),
            "avoid": several("characters left out", text("", "O|0|l|1|I"), 2, 3),
        },
        (
            "Make a password of {length} characters[ {symbols}][, without {avoid}].",
            "Give me a {length} character password[ {symbols}].",
        ),
        asks=(Ask("Make me a password.", "How many characters should it have?"),),
    ),
)
