"""Food, parcels, rides and places nearby."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import CITIES, DISHES, STREETS
from macaron.train.demi.tools.slots import clock, code, day, enum, flag, number, record, several, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_PLACE = "Blue Olive|Mama Rosa|Golden Wok|Taco Corner|Spice Garden|Noodle Bar"

TOOLS = (
    Tool(
        "order_meal",
        "Order dishes from a restaurant.",
        {
            "restaurant": text("name", _PLACE),
            "items": several("dishes", text("", DISHES), 1, 3),
            "address": text("where to", STREETS),
            "cutlery": flag("add cutlery", "with cutlery"),
        },
        (
            "Order {items} from {restaurant} to {address}[ {cutlery}].",
            "Get me {items} from {restaurant}, delivered to {address}.",
        ),
        asks=(
            Ask("Order {items} from {restaurant}.", "Where should it be delivered?"),
            Ask("I'm hungry, order me {items}.", "From which restaurant, and to which address?"),
        ),
        done=Done({"minutes": whole("", 15, 60, 5)}, "{restaurant} delivers {items} in {minutes} minutes."),
    ),
    Tool(
        "find_restaurants",
        "Find restaurants.",
        {
            "location": text("city", CITIES),
            "cuisine": enum("kitchen", "Italian|Thai|Mexican|Indian|Japanese"),
            "min_rating": number("out of 5", 3, 4.8),
            "open_now": flag("open", "that is open now"),
        },
        (
            "Find a {cuisine} restaurant in {location}[ rated at least {min_rating}][ {open_now}].",
            "Where can I eat {cuisine} food in {location}[ {open_now}]?",
        ),
        asks=(Ask("Find me a {cuisine} restaurant.", "In which city?"),),
        done=Done(
            {"name": text("", _PLACE), "rating": number("", 3.5, 5)}, "Try {name} in {location}, rated {rating}."
        ),
    ),
    Tool(
        "reserve_table",
        "Reserve a table.",
        {
            "restaurant": text("name", _PLACE),
            "guests": whole("people", 2, 10),
            "date": day("day"),
            "time": clock("time"),
        },
        (
            "Book a table for {guests} at {restaurant} on {date} at {time}.",
            "Reserve {restaurant} for {guests} people, {date}, {time}.",
        ),
        asks=(
            Ask("Book a table at {restaurant} on {date} at {time}.", "For how many people?"),
            Ask("Reserve a table for {guests} at {restaurant}.", "For which day and time?"),
        ),
    ),
    Tool(
        "track_parcel",
        "Find out where a parcel is.",
        {"tracking_number": code("parcel", "PK", 8)},
        (
            "Track {tracking_number}.",
            "Where's my parcel {tracking_number}?",
            "Any news about package {tracking_number}?",
        ),
        asks=(Ask("Where is my parcel?", "What is the tracking number?"),),
        done=Done(
            {"location": text("", CITIES), "eta": day("")},
            "Parcel {tracking_number} is in {location} and should arrive on {eta}.",
        ),
    ),
    Tool(
        "ship_parcel",
        "Send a parcel.",
        {
            "weight_kg": number("weight", 0.3, 20),
            "to": record(
                "receiver", {"street": text("street", STREETS), "city": text("city", CITIES)}, "{street} in {city}"
            ),
            "express": flag("next day", "by express"),
            "insured_value": whole("dollars", 50, 900, 50),
        },
        (
            "Ship a {weight_kg} kg parcel to {to}[ {express}][, insured for {insured_value} dollars].",
            "I need to send {weight_kg} kilograms to {to}[ {express}].",
        ),
        asks=(Ask("Ship a parcel to {to}.", "How heavy is the parcel?"),),
    ),
    Tool(
        "request_ride",
        "Call a car.",
        {
            "pickup": text("from", STREETS),
            "dropoff": text("to", "the airport|Central Station|the city museum|General Hospital"),
            "seats": whole("people", 2, 6),
            "shared": flag("share it", "and I don't mind sharing"),
        },
        (
            "Get me a ride from {pickup} to {dropoff}[ for {seats} people][ {shared}].",
            "I need a car to {dropoff} from {pickup}[, we are {seats}].",
        ),
        asks=(Ask("I need a ride to {dropoff}.", "Where should the car pick you up?"),),
        done=Done({"arrives_in": whole("", 2, 15)}, "A car to {dropoff} reaches {pickup} in {arrives_in} minutes."),
    ),
    Tool(
        "places_near",
        "Find places close to an address.",
        {
            "kind": enum("place", "pharmacy|supermarket|cash machine=atm|petrol station=gas_station|park"),
            "address": text("centre", STREETS),
            "radius_m": whole("metres", 200, 3000, 100),
        },
        ("Is there a {kind} near {address}[ within {radius_m} metres]?", "Find the closest {kind} to {address}."),
    ),
    Tool(
        "schedule_pickup",
        "Have a parcel collected.",
        {"address": text("where", STREETS), "date": day("day"), "parcels": whole("how many", 1, 6)},
        (
            "Pick up {parcels} parcels at {address} on {date}.",
            "Please collect {parcels} packages from {address}, {date}.",
        ),
    ),
    Tool(
        "tip_courier",
        "Give the courier a tip.",
        {"order_id": code("order", "F", 5), "percent": whole("of the price", 5, 25, 5)},
        (
            "Tip the courier of {order_id} {percent} percent.",
            "Give {percent}% extra to the driver for order {order_id}.",
        ),
    ),
)
