"""Names and places that several families of tools share."""

from __future__ import annotations

PEOPLE = (
    "Maria Keller|Tom Becker|Aisha Rahman|Lucas Moreau|Wei Zhang|Priya Nair|Jonas Holm|Elena Petrova|Sam Whitfield|"
    "Noor Haddad|Grace Okafor|Diego Ramos|Hannah Vogel|Yuki Tanaka|Oliver Grant|Zoe Martins"
)
FIRST_NAMES = "Maria|Tom|Aisha|Lucas|Wei|Priya|Jonas|Elena|Sam|Noor|Grace|Diego|Hannah|Yuki|Oliver|Zoe|Ben|Ines"
CITIES = (
    "Lisbon|Hamburg|Osaka|Toronto|Nairobi|Denver|Lyon|Seville|Porto|Chicago|Boston|Krakow|Melbourne|Austin|Oslo|"
    "Vienna|Dublin|Seattle|Montreal|Bogota|Manchester|Kyoto|Phoenix|Atlanta|Geneva|Rome|Prague|Singapore"
)
STREETS = "12 Elm Street|48 Harbour Road|7 Mill Lane|230 Cedar Avenue|91 Station Road|5 Garden Court|610 Lake Drive"
PRODUCTS = (
    "desk lamp|running shoes|coffee grinder|wireless mouse|rain jacket|blue backpack|yoga mat|water bottle|"
    "phone case|cotton sheets|board game|garden hose|winter gloves|electric kettle|hiking boots|office chair"
)
DISHES = (
    "margherita pizza|chicken curry|vegetable soup|fish tacos|mushroom risotto|beef burger|pad thai|falafel wrap|"
    "lentil stew|caesar salad|lasagna|ramen|pancakes|tomato soup|vegetable lasagna"
)
