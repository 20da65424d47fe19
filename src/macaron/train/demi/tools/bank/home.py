"""Lights, heating, music and other things at home."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import CITIES
from macaron.train.demi.tools.slots import clock, code, day, enum, flag, number, several, switch, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_ROOM = enum("room", "kitchen|bedroom|living room=living_room|hallway|bathroom=bath|office")

TOOLS = (
    Tool(
        "set_light",
        "Switch or dim the lights of a room.",
        {"room": _ROOM, "on": switch("on or off", "on", "off"), "brightness": whole("percent", 5, 100, 5)},
        ("Turn the {room} light {on}.", "Switch {on} the lights in the {room}[ at {brightness} percent]."),
        asks=(Ask("Turn the light {on}.", "In which room?"),),
        done=Done({"state": enum("", "done")}, "The {room} light is {on}."),
    ),
    Tool(
        "set_temperature",
        "Set the heating of a room.",
        {"room": _ROOM, "celsius": number("degrees", 16, 24), "until": clock("end")},
        ("Heat the {room} to {celsius} degrees[ until {until}].", "Set the {room} to {celsius} °C[ until {until}]."),
        asks=(Ask("Make the {room} warmer.", "What temperature should I set in the {room}?"),),
    ),
    Tool(
        "play_music",
        "Play music.",
        {
            "artist": text("artist", "Nina Simone|Miles Davis|Adele|Daft Punk|Shakira|Norah Jones"),
            "room": _ROOM,
            "volume": whole("percent", 10, 90, 5),
            "shuffle": flag("mixed", "in random order"),
        },
        ("Play {artist}[ in the {room}][ at volume {volume}].", "Put on some {artist}[ {shuffle}][ in the {room}]."),
        asks=(Ask("Play something in the {room}.", "Which artist would you like to hear?"),),
    ),
    Tool(
        "lock_door",
        "Lock or unlock a door.",
        {"door": enum("door", "front|back|garage"), "locked": switch("state", "lock", "unlock")},
        ("Please {locked} the {door} door.", "Can you {locked} the {door} door for me?"),
    ),
    Tool(
        "start_robot",
        "Send out the vacuum cleaner.",
        {"rooms": several("rooms", _ROOM), "mode": enum("how", "quiet|normal|deep")},
        ("Vacuum the {rooms}[ in {mode} mode].", "Have the robot clean {rooms}[, {mode}]."),
    ),
    Tool(
        "set_blinds",
        "Move the blinds of a room.",
        {"room": _ROOM, "position": whole("percent closed", 0, 100, 10)},
        ("Close the {room} blinds to {position} percent.", "Set the blinds in the {room} to {position}%."),
    ),
    Tool(
        "weather_report",
        "Get the weather of a place.",
        {
            "city": text("city", CITIES),
            "date": day("day"),
            "unit": enum("degrees in", "Celsius=celsius|Fahrenheit=fahrenheit"),
        },
        (
            "What's the weather in {city}[ on {date}]?",
            "How warm is it in {city}[ in {unit}]?",
            "Will it rain in {city}[ on {date}]?",
        ),
        asks=(Ask("What's the weather?", "For which city?"),),
        done=Done(
            {"temperature": whole("", -5, 35), "sky": enum("", "sunny|cloudy|rainy|clear")},
            "In {city} it is {sky} at {temperature} degrees.",
        ),
    ),
    Tool(
        "get_air_quality",
        "Get the air quality of a place.",
        {"city": text("city", CITIES), "pollutant": enum("which", "ozone|fine dust=pm25|nitrogen dioxide=no2")},
        ("How is the air in {city}?", "What's the {pollutant} level in {city}?"),
        done=Done({"index": whole("", 10, 160)}, "The air quality index in {city} is {index}."),
    ),
    Tool(
        "add_to_shopping_list",
        "Add things to the shopping list.",
        {
            "items": several("things", text("", "milk|bread|apples|batteries|soap|rice|coffee|cheese"), 1, 3),
            "store": text("where", "the bakery|Greenmarket|the corner shop"),
        },
        ("Put {items} on the shopping list[ for {store}].", "We need {items}[ from {store}], add it to the list."),
    ),
    Tool(
        "check_camera",
        "Show a camera's last picture.",
        {"camera": enum("which", "driveway|garden|nursery|entrance")},
        ("Show me the {camera} camera.", "What does the camera in the {camera} see?"),
    ),
    Tool(
        "report_defect",
        "Report a defect to the landlord.",
        {
            "item": text("what", "the dishwasher|the bathroom tap|a window|the heating"),
            "flat": code("flat", "A", 2),
            "urgent": flag("at once", "and it is urgent"),
        },
        (
            "Tell the landlord that {item} in flat {flat} is broken[ {urgent}].",
            "Report {item} as broken, flat {flat}[ {urgent}].",
        ),
    ),
)
