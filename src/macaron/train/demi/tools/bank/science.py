"""Calculations in geometry, physics, chemistry and statistics."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import default, enum, made, number, record, several, text, whole
from macaron.train.demi.tools.spec import Ask, Tool

_NUMBERS = several("The numbers.", number("", -40, 99), 4, 7)
_POINT = {"x": number("First coordinate.", -30, 30), "y": number("Second coordinate.", -30, 30)}

TOOLS = (
    Tool(
        "trapezoid_area",
        "Computes the area of a trapezoid from its parallel sides and its height.",
        {
            "base_a": number("First parallel side.", 1, 60),
            "base_b": number("Second parallel side.", 1, 60),
            "height": number("Distance of the sides.", 1, 40),
            "unit": default(enum("Unit of length.", "cm|m|inch"), "m"),
        },
        (
            "Find the area of a trapezoid with sides {base_a} and {base_b} and height {height}[ in {unit}].",
            "A trapezoid with parallel sides {base_a} and {base_b} is {height} high. What is its area[ (unit {unit})]?",
        ),
        asks=(Ask("Find the area of a trapezoid of height {height}.", "How long are its two parallel sides?"),),
    ),
    Tool(
        "cone_volume",
        "Computes the volume of a cone.",
        {
            "radius": number("Radius of the base.", 1, 40),
            "height": number("Height.", 1, 60),
            "decimals": whole("Digits.", 0, 5),
        },
        (
            "What's the volume of a cone with radius {radius} and height {height}[ to {decimals} decimals]?",
            "Cone volume: r={radius}, h={height}",
        ),
    ),
    Tool(
        "cylinder_surface",
        "Computes the surface of a cylinder.",
        {"radius": number("Radius of the base.", 1, 40), "height": number("Height.", 1, 60)},
        (
            "Compute the surface of a cylinder, radius {radius}, height {height}.",
            "How much paint covers a pipe of radius {radius} and length {height}?",
        ),
    ),
    Tool(
        "point_distance",
        "Computes how far two points in the plane are apart.",
        {"first": record("A point.", _POINT, "({x}, {y})"), "second": record("Another point.", _POINT, "({x}, {y})")},
        ("How far is {first} from {second}?", "Compute the distance between {first} and {second}."),
    ),
    Tool(
        "kinetic_energy_of",
        "Computes the kinetic energy of a moving body.",
        {"mass": number("Mass in kilograms.", 0.5, 2000), "speed": number("Speed in meters a second.", 1, 90)},
        (
            "What is the kinetic energy of {mass} kg moving at {speed} m/s?",
            "A body of {mass} kg flies at {speed} m/s. How much energy is in it?",
        ),
    ),
    Tool(
        "projectile_range",
        "Computes how far a thrown body flies.",
        {
            "speed": number("Speed at the start in m/s.", 3, 90),
            "angle": whole("Angle in degrees.", 10, 80),
            "gravity": default(number("Acceleration in m/s^2.", 1, 25, 2), 9.81),
            "start_height": default(number("Height at the start in meters.", 1, 40), 0),
        },
        (
            "How far does a ball fly at {speed} m/s and {angle} degrees[ from {start_height} m up][, g={gravity}]?",
            "Compute the range of a throw: {speed} m/s, angle {angle}°[, g = {gravity}].",
        ),
    ),
    Tool(
        "ohms_law",
        "Computes the current through a resistor.",
        {"voltage": number("Volts.", 1, 240), "resistance": number("Ohms.", 1, 900)},
        (
            "What current flows at {voltage} volts through {resistance} ohms?",
            "Compute the current: {voltage} V, {resistance} Ω.",
        ),
        asks=(Ask("What current flows at {voltage} volts?", "What is the resistance in ohms?"),),
    ),
    Tool(
        "dilute_solution",
        "Computes how much stock solution is needed for a dilution.",
        {
            "stock": number("Concentration of the stock in mol/l.", 1, 18),
            "target": number("Wanted concentration in mol/l.", 0.1, 0.9),
            "volume_ml": whole("Wanted volume in milliliters.", 10, 2000, 10),
        },
        (
            "How do I make {volume_ml} ml of {target} mol/l from a {stock} mol/l stock?",
            "Dilute {stock} M to {target} M, {volume_ml} ml in all.",
        ),
    ),
    Tool(
        "molar_weight",
        "Returns the molar mass of a compound.",
        {
            "formula": text("Chemical formula.", "H2SO4|C6H12O6|NaHCO3|CaCO3|NH4NO3|C8H10N4O2"),
            "decimals": default(whole("Digits.", 0, 4), 2),
        },
        (
            "What does one mole of {formula} weigh[, {decimals} decimals]?",
            "Molar mass of {formula}[ to {decimals} digits]",
        ),
    ),
    Tool(
        "spread_of_numbers",
        "Computes variance or standard deviation of numbers.",
        {
            "numbers": _NUMBERS,
            "measure": enum("What is computed.", "variance|standard deviation=std|range"),
            "sample": default(enum("Sample or population.", "sample|population"), "sample"),
        },
        ("Compute the {measure} of {numbers}[ as a {sample}].", "What's the {measure} of {numbers}?"),
    ),
    Tool(
        "fit_line",
        "Fits a straight line to points.",
        {
            "xs": several("First coordinates.", whole("", -9, 30), 3, 4),
            "ys": several("Second coordinates.", whole("", -9, 90), 3, 4),
        },
        ("Fit a line to x = {xs} and y = {ys}.", "Linear regression with xs {xs}, ys {ys}."),
    ),
    Tool(
        "chance_of_successes",
        "Computes how likely a number of successes in independent trials is.",
        {
            "trials": whole("Number of trials.", 5, 60),
            "successes": whole("Number of successes.", 0, 5),
            "probability": number("Chance of a success in one trial, from 0 to 1.", 0.05, 0.95, 2),
        },
        (
            "How likely are {successes} successes in {trials} trials with probability {probability}?",
            "Toss {trials} times with chance {probability}: probability of {successes} hits?",
        ),
    ),
    Tool(
        "element_facts",
        "Returns facts about a chemical element.",
        {
            "element": enum("Name of the element.", "helium|copper|sodium|argon|mercury"),
            "property": text("The fact.", "melting point|density|discoverer|mass"),
        },
        ("What is the {property} of {element}?", "Look up {element}: {property}.", "查一下元素{element}的{property}。"),
    ),
    Tool(
        "species_sighting",
        "Records that an animal or plant was seen.",
        {
            "species": text("Name of the species.", "red kite|fire salamander|grey seal|bee orchid|barn owl"),
            "place": made("Where.", values.town),
            "count": default(whole("How many.", 2, 40), 1),
        },
        (
            "I saw [{count} ]{species} in {place}, please record it.",
            "Record a {species} sighting in {place}[, {count} of them].",
        ),
    ),
)
