"""Patients, visits, nutrition and training."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import clock, day, default, enum, flag, made, number, several, text, whole
from macaron.train.demi.tools.spec import Ask, Tool

_PATIENT = made("Full name of the patient.", values.person)
_CASE = made("Number of the patient's file.", values.long_number)

TOOLS = (
    Tool(
        "schedule_visit",
        "Schedules a visit of a patient at the clinic.",
        {
            "patient": _PATIENT,
            "department": enum("Department.", "cardiology|dermatology|radiology|physiotherapy"),
            "date": day("Day of the visit"),
            "time": clock("Time of the visit"),
            "first_visit": default(flag("New patient.", "first visit"), False),
        },
        (
            "Schedule {patient} in {department} on {date} at {time}[, {first_visit}].",
            "{patient} needs a date in {department}: {date}, {time}[ ({first_visit})].",
        ),
        asks=(Ask("Schedule {patient} in {department}.", "On which day, and at what time?"),),
    ),
    Tool(
        "move_visit",
        "Moves a visit to another day.",
        {"patient": _PATIENT, "new_date": day("New day"), "reason": text("Why.", "illness|travel|work|no childcare")},
        (
            "Move the visit of {patient} to {new_date}[ because of {reason}].",
            "{patient} can't come, {new_date} instead[ ({reason})].",
        ),
    ),
    Tool(
        "cancel_visit",
        "Cancels a visit.",
        {"patient": _PATIENT, "date": day("Day of the visit")},
        ("Cancel the visit of {patient} on {date}.", "{patient} won't come on {date}."),
    ),
    Tool(
        "patient_file",
        "Returns parts of a patient's file.",
        {
            "file_number": _CASE,
            "sections": several("Which parts.", enum("", "allergies|medication|visits|lab|vaccinations"), 1, 3),
        },
        ("Open file {file_number}[, sections {sections}].", "Show me {sections} from patient file {file_number}."),
        asks=(Ask("Open the patient's file.", "What is the number of the file?"),),
    ),
    Tool(
        "record_vitals",
        "Writes measured values into a patient's file.",
        {
            "file_number": _CASE,
            "systolic": whole("Upper blood pressure in mmHg.", 95, 180),
            "diastolic": whole("Lower blood pressure in mmHg.", 55, 110),
            "pulse": whole("Beats a minute.", 45, 130),
            "temperature": number("Degrees Celsius.", 35.5, 40),
        },
        (
            "Record {systolic} over {diastolic} for {file_number}[, pulse {pulse}][, temperature {temperature}].",
            "File {file_number}: blood pressure {systolic}/{diastolic}[, {temperature} degrees].",
        ),
    ),
    Tool(
        "check_interaction",
        "Tells whether medicines can be taken together.",
        {
            "medicines": several(
                "Names of the medicines.", text("", "ibuprofen|warfarin|lisinopril|metformin|aspirin|zinc"), 2, 3
            ),
            "age": whole("Age of the patient.", 18, 95),
        },
        (
            "Can I take {medicines} together[ at the age of {age}]?",
            "Check {medicines} for interactions[, patient is {age}].",
        ),
    ),
    Tool(
        "daily_energy",
        "Computes how many calories a person needs a day.",
        {
            "weight_kg": number("Weight in kilograms.", 45, 120),
            "height_cm": whole("Height in centimeters.", 145, 205),
            "age": whole("Age in years.", 18, 85),
            "sex": enum("Sex.", "female|male"),
            "activity": default(enum("How much the person moves.", "low|moderate|high"), "moderate"),
        },
        (
            "What does a {sex} aged {age} of {weight_kg} kg and {height_cm} cm need a day[, activity {activity}]?",
            "Energy need: {sex}, {age} years, {weight_kg} kg, {height_cm} cm[, {activity} activity].",
        ),
    ),
    Tool(
        "food_facts",
        "Returns calories and nutrients of a food.",
        {
            "food": text("The food.", "oat milk|lentils|salmon|avocado|white rice|almonds|feta|dates"),
            "grams": default(number("Amount in grams.", 10, 400), 100),
            "nutrients": several("Only these nutrients.", enum("", "protein|fat|fiber|sugar|iron"), 1, 3),
        },
        (
            "What's in {grams} grams of {food}?",
            "How much {nutrients} does {food} have[ per {grams} g]?",
            "Nutrition facts of {food}",
        ),
    ),
    Tool(
        "plan_training",
        "Makes a training plan.",
        {
            "goal": enum("Goal.", "strength|endurance|weight loss=weight_loss|mobility"),
            "weeks": whole("Length in weeks.", 2, 16),
            "sessions": default(whole("Sessions a week.", 1, 6), 3),
            "equipment": several("What is at hand.", text("", "dumbbells|a bike|a bench|bands|a rowing machine"), 1, 2),
        },
        (
            "Make me a {weeks} week plan for {goal}[ with {sessions} sessions a week][, I have {equipment}].",
            "I want to train {goal} for {weeks} weeks[, {sessions} times a week].",
        ),
    ),
    Tool(
        "heart_zones",
        "Computes the zones of the heart rate for training.",
        {"age": whole("Age in years.", 15, 80), "resting_rate": whole("Beats a minute at rest.", 42, 85)},
        (
            "What are my heart rate zones at {age}[ with a resting pulse of {resting_rate}]?",
            "Heart zones, age {age}[, resting {resting_rate}].",
        ),
    ),
    Tool(
        "register_patient",
        "Creates the file of a new patient.",
        {
            "name": made("Name.", values.chinese_person),
            "phone": made("Telephone number.", values.phone),
            "age": whole("Age.", 2, 95),
        },
        ("登记新患者{name},电话{phone}[,{age}岁]。", "新病人:{name},[{age}岁,]联系电话{phone}。"),
        asks=(Ask("登记一下{name}。", "请问{name}的电话号码是多少?"),),
    ),
)
