"""Weather, air and tides, as a weather service offers them."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import day, default, enum, made, number, record, several, switch, whole
from macaron.train.demi.tools.spec import Ask, Tool

_PLACE = made("The place to look up, as city and state or country, such as 'Salem, OR'.", values.town)
_UNITS = default(enum("Unit system of the answer.", "metric|imperial"), "metric")
_STATION = made("Identifier of the weather station, as printed on its page.", values.token)
_POINT = record(
    "The point to look up.",
    {
        "latitude": number("Degrees north, negative in the south.", -60, 70, 3),
        "longitude": number("Degrees east, negative in the west.", -170, 170, 3),
    },
    "latitude {latitude}, longitude {longitude}",
)

TOOLS = (
    Tool(
        "observe_conditions",
        "Returns what the weather is at this moment in a place: temperature, wind, humidity and sky.",
        {"location": _PLACE, "units": _UNITS},
        (
            "What's it like outside in {location} right now?",
            "Show the current weather in {location}[ in {units} units].",
            "I'm about to leave the house in {location}, do I need a coat?",
        ),
        asks=(Ask("Do I need a coat right now?", "Where are you? I need the city and the state or country."),),
    ),
    Tool(
        "forecast_days",
        "Returns the daily weather forecast of a place for up to 14 days, starting tomorrow.",
        {
            "location": _PLACE,
            "days": whole("Number of days to forecast, between 1 and 14.", 2, 14),
            "units": _UNITS,
            "include_wind": default(switch("Whether wind is part of every day.", "with wind", "without wind"), False),
        },
        (
            "Show the forecast for the next {days} days in {location}[, {include_wind}].",
            "We spend {days} days in {location} from tomorrow. What weather should we pack for?[ Use {units} units.]",
            "{days}-day forecast {location}[, {units}]",
        ),
        asks=(Ask("Show the forecast for {location}.", "For how many days?"),),
    ),
    Tool(
        "past_weather",
        "Returns the recorded weather of a place on one day in the past.",
        {"location": _PLACE, "date": day("The day in the past"), "units": _UNITS},
        (
            "How was the weather in {location} on {date}?",
            "Look up the weather recorded in {location} on {date}[, {units}].",
        ),
    ),
    Tool(
        "point_forecast",
        "Returns the hourly forecast for coordinates instead of a named place.",
        {"point": _POINT, "hours": default(whole("How many hours ahead.", 3, 72, 3), 24)},
        (
            "Get the hourly forecast at {point}[ for {hours} hours].",
            "Our boat lies at {point}. What will the weather do[ in the next {hours} hours]?",
        ),
    ),
    Tool(
        "severe_alerts",
        "Lists official warnings, such as storms or floods, that are in force for a region.",
        {
            "region": made("Name of the region or city.", values.city),
            "kinds": several("Only warnings of these kinds.", enum("", "storm|flood|heat|frost|fire"), 1, 3),
            "min_severity": default(enum("Leave out what is less severe.", "minor|moderate|severe|extreme"), "minor"),
        },
        (
            "Are there any warnings for {region}[, only {min_severity} or worse]?",
            "List {kinds} warnings in {region}.",
            "Is anything dangerous coming to {region}? I only care about {kinds}.",
        ),
    ),
    Tool(
        "tide_table",
        "Returns the times of high and low water at a harbor.",
        {"harbor": made("The harbor's name.", values.city), "date": day("The day of the table")},
        ("When is high water in {harbor} on {date}?", "Show the tides of {harbor} for {date}."),
    ),
    Tool(
        "pollen_level",
        "Returns how much pollen of a plant is in the air of a place.",
        {"location": _PLACE, "plant": enum("The plant.", "birch|grass|ragweed|hazel|olive")},
        ("How bad is the {plant} pollen in {location}?", "My eyes itch. Check {plant} pollen for {location}."),
    ),
    Tool(
        "station_reading",
        "Returns the last values that one weather station has sent.",
        {
            "station_id": _STATION,
            "metrics": several("The values to return.", enum("", "temperature|pressure|rain|wind|uv"), 1, 3),
        },
        (
            "Read {metrics} from station {station_id}.",
            "What does station {station_id} report for {metrics}?",
        ),
    ),
    Tool(
        "chinese_city_weather",
        "Returns the weather of a city in China by its Chinese name.",
        {"city": made("Chinese name of the city.", values.chinese_city), "days": whole("Days to forecast.", 1, 7)},
        ("查一下{city}[未来{days}天]的天气。", "{city}今天冷不冷?", "帮我看看{city}[接下来{days}天]会不会下雨。"),
    ),
)
