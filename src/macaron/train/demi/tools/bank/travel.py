"""Flights, hotels, trains, cars and sights."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import CITIES, PEOPLE
from macaron.train.demi.tools.slots import clock, code, day, enum, flag, record, several, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_CITY = text("city", CITIES)
_CABIN = enum("class", "economy|business|first class=first")

TOOLS = (
    Tool(
        "search_flights",
        "Find flights between two cities.",
        {
            "origin": text("city of departure", CITIES),
            "destination": text("city of arrival", CITIES),
            "date": day("day of departure"),
            "cabin": _CABIN,
            "nonstop": flag("no stops", "nonstop only"),
        },
        (
            "Find [{cabin} ]flights from {origin} to {destination} on {date}[, {nonstop}].",
            "I need to fly from {origin} to {destination} on {date}[ in {cabin}].",
            "Which flights go to {destination} from {origin} on {date}?",
        ),
        asks=(
            Ask("Find me a flight to {destination}.", "From which city, and on which day?"),
            Ask("I want to fly from {origin} to {destination}.", "On which day do you want to fly?"),
        ),
        done=Done(
            {"flight": code("", "MX", 3), "price": whole("", 80, 700)},
            "Flight {flight} from {origin} to {destination} costs ${price}.",
        ),
    ),
    Tool(
        "book_flight",
        "Book a seat on a flight.",
        {
            "flight_number": code("flight", "MX", 3),
            "passenger": text("full name", PEOPLE),
            "bags": whole("checked bags", 1, 3),
        },
        (
            "Book flight {flight_number} for {passenger}[ with {bags} checked bags].",
            "Put {passenger} on {flight_number}[, {bags} bags].",
        ),
        asks=(Ask("Book flight {flight_number}.", "Who is the passenger?"),),
    ),
    Tool(
        "cancel_reservation",
        "Cancel a flight reservation.",
        {"reservation_id": code("reservation", "R", 5)},
        ("Cancel my reservation {reservation_id}.", "I can't travel, please cancel {reservation_id}."),
        done=Done(
            {"refund": whole("", 40, 500)}, "Reservation {reservation_id} is cancelled and ${refund} will be refunded."
        ),
    ),
    Tool(
        "change_seat",
        "Move a passenger to another seat.",
        {"reservation_id": code("reservation", "R", 5), "seat": enum("kind of seat", "window|aisle|exit row=exit_row")},
        ("Give me a seat at the {seat} for {reservation_id}.", "On reservation {reservation_id} I'd prefer {seat}."),
    ),
    Tool(
        "flight_status",
        "Tell whether a flight is on time.",
        {"flight_number": code("flight", "MX", 3), "date": day("day")},
        ("Is flight {flight_number} on time[ on {date}]?", "Status of {flight_number}[ for {date}]?"),
        done=Done({"delay_minutes": whole("", 5, 90, 5)}, "Flight {flight_number} is {delay_minutes} minutes late."),
    ),
    Tool(
        "search_hotels",
        "Find hotels in a city.",
        {
            "city": _CITY,
            "check_in": day("first night"),
            "nights": whole("number of nights", 1, 9),
            "max_price": whole("dollars a night", 60, 300, 10),
            "stars": whole("at least", 2, 5),
        },
        (
            "Find a hotel in {city} from {check_in} for {nights} nights[ under {max_price} dollars a night].",
            "I need a [{stars}-star ]hotel in {city}, {nights} nights starting {check_in}.",
        ),
        asks=(Ask("Find me a hotel in {city}.", "From which day, and for how many nights?"),),
    ),
    Tool(
        "book_hotel",
        "Book a room in a hotel.",
        {
            "hotel": text("hotel", "Hotel Aurora|The Linden|Harbour Inn|Casa Verde|Grand Meridian|Maple Lodge"),
            "room": enum("kind of room", "single|double|suite"),
            "check_in": day("arrival"),
            "check_out": day("departure", end=True),
        },
        (
            "Book a {room} at {hotel} from {check_in} to {check_out}.",
            "Reserve a {room} room in {hotel}, arriving {check_in}, leaving {check_out}.",
        ),
        done=Done({"booking": code("", "B", 5)}, "Your {room} room at {hotel} is booked under {booking}."),
    ),
    Tool(
        "find_trains",
        "Find trains between two cities.",
        {"from_city": text("start", CITIES), "to_city": text("end", CITIES), "after": clock("earliest departure")},
        (
            "Trains from {from_city} to {to_city}[ after {after}]?",
            "How do I get from {from_city} to {to_city} by train[, leaving after {after}]?",
        ),
    ),
    Tool(
        "rent_car",
        "Rent a car.",
        {
            "city": _CITY,
            "pickup": day("first day"),
            "days": whole("how many days", 2, 14),
            "size": enum("car", "compact|SUV=suv|van"),
            "automatic": flag("gearbox", "with automatic gearbox"),
        },
        (
            "Rent a {size} in {city} for {days} days from {pickup}[ {automatic}].",
            "I need a {size} for {days} days, picked up in {city} on {pickup}.",
        ),
    ),
    Tool(
        "find_attractions",
        "Find sights in a city.",
        {
            "city": _CITY,
            "kinds": several("what interests", text("", "museums|parks|markets|castles|galleries"), 1, 3),
            "free_entry": flag("costs nothing", "with free entry"),
        },
        ("What {kinds} are there in {city}[ {free_entry}]?", "Show me {kinds} in {city}[ {free_entry}]."),
    ),
    Tool(
        "plan_route",
        "Plan a way between two points.",
        {
            "start": record(
                "coordinates",
                {"lat": whole("latitude", -60, 60), "lon": whole("longitude", -170, 170)},
                "latitude {lat}, longitude {lon}",
            ),
            "end": record(
                "coordinates",
                {"lat": whole("latitude", -60, 60), "lon": whole("longitude", -170, 170)},
                "latitude {lat}, longitude {lon}",
            ),
            "mode": enum("how", "car=driving|bike=cycling|foot=walking"),
        },
        ("Plan a route from {start} to {end}[ by {mode}].", "Get me from {start} to {end}[ by {mode}]."),
    ),
)
