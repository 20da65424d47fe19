"""Search, news and maps."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import day, default, enum, flag, made, number, record, several, text, whole
from macaron.train.demi.tools.spec import Ask, Tool

_QUERY = made("Words to search for.", values.topic)
_FROM = made("Where the way begins, as an address or a city.", values.address)
_TO = made("Where the way ends, as an address or a city.", values.town)

TOOLS = (
    Tool(
        "query_web",
        "Searches the web and returns pages with title, address and a summary.",
        {
            "query": _QUERY,
            "max_results": default(whole("Number of pages, between 1 and 50.", 3, 50), 10),
            "site": text("Only pages of this site.", "wikipedia.org|example.com|archive.org|northwind.example"),
            "safe": default(flag("Leave out what is not for children.", "with safe search on"), False),
        },
        (
            "Search the web for {query}[, {max_results} results][ on {site}].",
            "Find me pages about {query}[ {safe}].",
            "Google {query}[ and give me {max_results} hits].",
        ),
        asks=(Ask("Search the web for me.", "What should I search for?"),),
    ),
    Tool(
        "query_images",
        "Searches pictures by words.",
        {
            "query": _QUERY,
            "color": enum("Dominant color.", "red|green|blue|black and white=mono"),
            "size": default(enum("Size of the pictures.", "small|medium|large"), "medium"),
        },
        ("Find pictures of {query}[ in {color}][, size {size}].", "Image search: {query}[, {size}]"),
    ),
    Tool(
        "query_news",
        "Searches recent articles of newspapers and agencies.",
        {
            "topic": _QUERY,
            "since": day("Oldest day"),
            "language": default(enum("Two-letter code.", "English=en|German=de|French=fr|Spanish=es"), "en"),
            "outlets": several("Only these newspapers.", made("", values.title), 1, 2),
        },
        (
            "What's in the news about {topic}[ since {since}][ in {language}]?",
            "Find articles on {topic}[ from {outlets}].",
            "Any recent reporting on {topic}[, not older than {since}]?",
        ),
    ),
    Tool(
        "fetch_page",
        "Downloads a page and returns its text.",
        {
            "address": made("Full address of the page.", values.url),
            "format": default(enum("Form of the text.", "markdown|plain|html"), "markdown"),
            "timeout": default(whole("Seconds to wait.", 5, 60, 5), 30),
        },
        (
            "Open {address}[ as {format}].",
            "Read {address}[, wait at most {timeout} seconds].",
            "What does {address} say?",
        ),
    ),
    Tool(
        "shorten_link",
        "Makes a short address for a long one.",
        {"address": made("The long address.", values.url), "alias": made("Wanted name.", values.slug)},
        ("Shorten {address}[ to {alias}].", "I need a short link for {address}[, call it {alias}]."),
    ),
    Tool(
        "directions",
        "Returns the way from one place to another.",
        {
            "origin": _FROM,
            "destination": _TO,
            "mode": default(enum("How to travel.", "driving|walking|cycling|transit"), "driving"),
            "avoid": several("What to avoid.", enum("", "tolls|ferries|highways"), 1, 2),
        },
        (
            "How do I get from {origin} to {destination}[ by {mode}][, avoiding {avoid}]?",
            "Directions from {origin} to {destination}[, {mode}].",
            "I'm at {origin} and have to be in {destination}[, avoid {avoid}].",
        ),
        asks=(Ask("How do I get to {destination}?", "Where do you start from?"),),
    ),
    Tool(
        "travel_minutes",
        "Returns only how long the way between two cities takes.",
        {
            "origin": made("City of departure.", values.city),
            "destination": made("City of arrival.", values.town),
            "depart_at": made("Moment of departure in ISO form.", values.instant),
        },
        (
            "How long does it take from {origin} to {destination}[ if I leave at {depart_at}]?",
            "Travel time {origin} to {destination}[, departing {depart_at}]",
        ),
    ),
    Tool(
        "address_to_point",
        "Returns latitude and longitude of an address.",
        {"street": made("Street and number.", values.address), "city": made("City.", values.city)},
        ("What are the coordinates of {street} in {city}?", "Geocode {street}, city {city}."),
    ),
    Tool(
        "point_to_address",
        "Returns the address at a latitude and longitude.",
        {
            "latitude": number("Degrees north, negative in the south.", -60, 70, 4),
            "longitude": number("Degrees east, negative in the west.", -170, 170, 4),
        },
        (
            "What's the address at {latitude}, {longitude}?",
            "Which street is at latitude {latitude}, longitude {longitude}?",
        ),
    ),
    Tool(
        "nearby_shops",
        "Finds shops and services around a place.",
        {
            "location": made("City and state or country, such as 'Salem, OR'.", values.town),
            "category": enum("Kind of shop.", "bakery|pharmacy|bookshop|florist|hardware store=hardware_store"),
            "open_now": default(flag("Only what is open.", "that are open now"), False),
            "min_rating": number("Stars, at least.", 2, 4.9),
        },
        (
            "Find a {category} in {location}[ with at least {min_rating} stars].",
            "I'm looking for {category} places around {location}[ {open_now}].",
        ),
    ),
    Tool(
        "static_map",
        "Draws a map around a point.",
        {
            "center": record(
                "Middle of the map.",
                {"lat": number("Degrees north.", -60, 70, 2), "lng": number("Degrees east.", -170, 170, 2)},
                "{lat}, {lng}",
            ),
            "zoom": default(whole("From 1, the world, to 20, a house.", 3, 20), 12),
            "style": enum("Look of the map.", "road|satellite|terrain"),
        },
        ("Draw a [{style} ]map around {center}[ at zoom {zoom}].", "Show me {center} on a map[, zoom level {zoom}]."),
    ),
    Tool(
        "look_up_article",
        "Returns an article of an encyclopedia.",
        {"subject": _QUERY, "sentences": default(whole("Length in sentences.", 2, 12), 5)},
        (
            "What does the encyclopedia say about {subject}[ in {sentences} sentences]?",
            "Look up {subject}[, at most {sentences} sentences].",
        ),
    ),
)
