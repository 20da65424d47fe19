"""Appointments, medicine, food and training."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import DISHES
from macaron.train.demi.tools.slots import clock, code, day, enum, number, several, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_DOCTOR = "Dr. Lindqvist|Dr. Mbeki|Dr. Alvarez|Dr. Schuster|Dr. Rao"

TOOLS = (
    Tool(
        "book_appointment",
        "Book a visit at a doctor's.",
        {
            "doctor": text("name", _DOCTOR),
            "date": day("day"),
            "time": clock("time"),
            "reason": text("why", "check-up|back pain|vaccination|headaches|skin rash"),
        },
        (
            "Book an appointment with {doctor} on {date} at {time}[ for {reason}].",
            "I'd like to see {doctor} on {date}, {time}[, because of {reason}].",
        ),
        asks=(Ask("I need an appointment with {doctor}.", "Which day and time suit you?"),),
        done=Done(
            {"appointment_id": code("", "AP", 4)},
            "You see {doctor} on {date} at {time}; the number is {appointment_id}.",
        ),
    ),
    Tool(
        "find_doctor",
        "Find doctors of a speciality near a postal code.",
        {
            "specialty": enum(
                "field", "dermatologist=dermatology|cardiologist=cardiology|dentist=dentistry|eye doctor=ophthalmology"
            ),
            "postcode": code("postal code", "", 5),
            "radius_km": whole("how far", 5, 50, 5),
        },
        (
            "Find a {specialty} near {postcode}[ within {radius_km} km].",
            "Is there a {specialty} around {postcode}[, at most {radius_km} kilometres away]?",
        ),
        asks=(Ask("Find me a {specialty}.", "What is your postal code?"),),
    ),
    Tool(
        "refill_prescription",
        "Order a prescription again.",
        {
            "prescription_id": code("prescription", "RX", 6),
            "pharmacy": text("where to collect", "Green Cross Pharmacy|Market Pharmacy|Lakeside Drugs"),
            "packs": whole("how many", 1, 3),
        },
        (
            "Refill {prescription_id} at {pharmacy}.",
            "I need my prescription {prescription_id} again, I'll collect it at {pharmacy}[, {packs} packs].",
        ),
    ),
    Tool(
        "log_medication",
        "Record that medicine was taken.",
        {
            "medicine": text("name", "ibuprofen|vitamin D|metformin|amoxicillin|cetirizine"),
            "dose_mg": whole("milligrams", 5, 800, 5),
            "time": clock("when"),
        },
        ("I took {dose_mg} mg of {medicine}[ at {time}].", "Log {dose_mg} milligrams {medicine}[ taken at {time}]."),
        asks=(Ask("I just took {medicine}, log it.", "How many milligrams did you take?"),),
    ),
    Tool(
        "log_meal",
        "Record a meal.",
        {
            "dish": text("what", DISHES),
            "meal": enum("which", "breakfast|lunch|dinner|snack"),
            "calories": whole("kcal", 100, 1200, 10),
        },
        ("I had {dish} for {meal}[, about {calories} calories].", "Log {dish} as my {meal}[ with {calories} kcal]."),
        done=Done({"total_today": whole("", 900, 2600, 10)}, "I logged {dish}; today's total is {total_today} kcal."),
    ),
    Tool(
        "log_workout",
        "Record a workout.",
        {
            "activity": enum("what", "running|swimming|cycling|rowing|hiking"),
            "minutes": whole("how long", 10, 120, 5),
            "distance_km": number("how far", 1, 40),
        },
        (
            "I did {minutes} minutes of {activity}[, {distance_km} km].",
            "Log my {activity}: {minutes} min[ over {distance_km} kilometres].",
        ),
    ),
    Tool(
        "calculate_bmi",
        "Compute the body mass index.",
        {"weight_kg": whole("weight in kilograms", 45, 120), "height_cm": whole("height in centimetres", 150, 200)},
        (
            "What's my BMI at {weight_kg} kg and {height_cm} cm?",
            "Calculate the BMI of a person who weighs {weight_kg} kilograms and is {height_cm} centimetres tall.",
        ),
        asks=(Ask("I weigh {weight_kg} kg. What's my BMI?", "How tall are you in centimetres?"),),
        done=Done({"bmi": number("", 17, 34)}, "The body mass index is {bmi}."),
    ),
    Tool(
        "get_sleep",
        "Show the sleep of a night.",
        {"night": day("night")},
        ("How did I sleep on {night}?", "How many hours of sleep did I get on {night}?"),
        done=Done({"hours": number("", 4, 9)}, "You slept {hours} hours on {night}."),
    ),
    Tool(
        "find_recipe",
        "Find recipes by ingredients.",
        {
            "ingredients": several(
                "what to use", text("", "rice|tomatoes|chickpeas|eggs|spinach|potatoes|tofu|mushrooms")
            ),
            "diet": enum("diet", "vegan|vegetarian|gluten-free"),
            "max_minutes": whole("longest", 15, 90, 5),
        },
        (
            "Find a [{diet} ]recipe with {ingredients}[ that takes at most {max_minutes} minutes].",
            "What can I cook from {ingredients}[ in {max_minutes} minutes]?",
        ),
    ),
)
