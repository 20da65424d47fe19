"""Cars and fleets: climate, doors, charging and trips."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import clock, day, default, enum, flag, made, number, several, switch, whole
from macaron.train.demi.tools.spec import Ask, Tool

_PLATE = made("Number plate of the vehicle.", values.plate)
_WINDOW = enum("The window.", "driver|passenger|rear left=rear_left|rear right=rear_right")

TOOLS = (
    Tool(
        "set_cabin_climate",
        "Heats or cools the inside of a vehicle to a temperature.",
        {
            "temperature": number("Target temperature.", 16, 27),
            "unit": default(enum("Unit of the temperature.", "celsius|fahrenheit"), "celsius"),
            "fan_speed": default(whole("Strength of the fan from 1 to 7.", 1, 7), 3),
            "zone": default(enum("Part of the cabin.", "driver|passenger|rear|all"), "all"),
        },
        (
            "Set the cabin to {temperature} degrees[ {unit}][ with fan speed {fan_speed}].",
            "It's freezing in here, make it {temperature}[ in the {zone} zone].",
        ),
        asks=(Ask("Make it warmer in the car.", "What temperature would you like?"),),
    ),
    Tool(
        "move_window",
        "Opens or closes one window by a share of its height.",
        {"window": _WINDOW, "open_percent": whole("0 is closed, 100 is open.", 0, 100, 5)},
        ("Open the {window} window to {open_percent} percent.", "Set the {window} window at {open_percent}%."),
    ),
    Tool(
        "latch_doors",
        "Locks or unlocks the doors of a vehicle.",
        {"plate": _PLATE, "locked": switch("Whether the doors are locked afterwards.", "Lock", "Unlock")},
        ("{locked} the car {plate}.", "{locked} {plate}, please."),
    ),
    Tool(
        "start_charging",
        "Starts to charge an electric vehicle.",
        {
            "plate": _PLATE,
            "target_percent": default(whole("Level at which charging stops.", 50, 100, 5), 80),
            "not_before": clock("Time of day to wait for"),
        },
        (
            "Charge {plate}[ up to {target_percent}%][, not before {not_before}].",
            "Plug in {plate}[ and stop at {target_percent} percent].",
        ),
        asks=(Ask("Start charging.", "Which vehicle? Please give me its number plate."),),
    ),
    Tool(
        "find_charger",
        "Finds charging stations near a place.",
        {
            "near": made("City and state or country, such as 'Salem, OR'.", values.town),
            "min_kw": whole("Power of the charger in kilowatts, at least.", 11, 300, 11),
            "plug": enum("Kind of plug.", "CCS|CHAdeMO|Type 2=Type2"),
            "radius_km": default(number("Radius in kilometers.", 1, 25), 5),
        },
        (
            "Find a charger near {near}[ with at least {min_kw} kW][ and a {plug} plug].",
            "Where can I charge close to {near}[, within {radius_km} km]?",
        ),
    ),
    Tool(
        "tire_pressure",
        "Returns the pressure of a vehicle's tires.",
        {"plate": _PLATE, "unit": default(enum("Unit of the answer.", "bar|psi|kPa"), "bar")},
        ("What's the tire pressure of {plate}[ in {unit}]?", "Check the tires of {plate}[, {unit}]."),
    ),
    Tool(
        "locate_vehicle",
        "Returns where a vehicle of the fleet is.",
        {"plate": _PLATE, "with_history": default(flag("Add the last day's way.", "with its last trips"), False)},
        ("Where is {plate}[, {with_history}]?", "Locate the van {plate}[ {with_history}]."),
    ),
    Tool(
        "assign_driver",
        "Gives a vehicle to a driver for a day.",
        {"plate": _PLATE, "driver": made("Full name of the driver.", values.person), "date": day("The day")},
        ("Assign {driver} to {plate} on {date}.", "{driver} drives {plate} on {date}."),
        asks=(Ask("Assign {driver} to {plate}.", "For which day?"),),
    ),
    Tool(
        "book_service",
        "Books a date at a garage.",
        {
            "plate": _PLATE,
            "jobs": several("What is to be done.", enum("", "oil change|brakes|inspection|tires|battery"), 1, 3),
            "date": day("The day"),
            "garage": made("Name of the garage.", values.company),
        },
        (
            "Book {plate} for {jobs} on {date}[ at {garage}].",
            "{plate} needs {jobs}. Get me a date on {date}[, preferably at {garage}].",
        ),
    ),
    Tool(
        "estimate_fuel",
        "Computes the fuel that a trip takes and what it costs.",
        {
            "distance": number("Length of the trip in kilometers.", 20, 900),
            "consumption": number("Liters for 100 kilometers.", 3, 12),
            "price": number("Price of a liter.", 1, 2.5, 2),
        },
        (
            "How much fuel do I need for {distance} km at {consumption} liters per 100 km[ if a liter costs {price}]?",
            "Estimate the fuel of a {distance} kilometer trip, {consumption} l/100km[, {price} a liter].",
        ),
    ),
    Tool(
        "flash_lights",
        "Flashes the lights so that the vehicle is found in a car park.",
        {"plate": _PLATE, "times": default(whole("How often.", 2, 10), 3)},
        ("Flash the lights of {plate}[ {times} times].", "让{plate}闪灯[{times}次]。"),
    ),
)
