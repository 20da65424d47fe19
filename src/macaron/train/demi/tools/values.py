"""Values that are drawn anew for every request, so that a call can only be right by copying them."""

from __future__ import annotations

from random import Random

_GIVEN = (
    "Maria|Tom|Aisha|Lucas|Wei|Priya|Jonas|Elena|Sam|Noor|Grace|Diego|Hannah|Yuki|Oliver|Zoe|"
    "Ben|Ines|Karim|Freya|Mateo|Leila|Anders|Chloe|Rajiv|Tessa|Omar|Bianca|Felix|Naomi"
)
_FAMILY = (
    "Keller|Becker|Rahman|Moreau|Zhang|Nair|Holm|Petrova|Whitfield|Haddad|Okafor|Ramos|Vogel|"
    "Tanaka|Grant|Martins|Lund|Castillo|Novak|Abebe|Ferrari|Quinn|Sato|Iyer|Brandt|Osei|Larsen|"
    "Duarte"
)
_TOWNS = (
    "Austin, TX|Portland, OR|Boise, ID|Tampa, FL|Madison, WI|Reno, NV|Tucson, AZ|Eugene, OR|"
    "Savannah, GA|Spokane, WA|Santa Fe, NM|Ann Arbor, MI|Burlington, VT|Fresno, CA|Little Rock, AR|"
    "Lisbon, Portugal|Lyon, France|Graz, Austria|Nairobi, Kenya|Osaka, Japan|Cork, Ireland|"
    "Bergen, Norway|Leeds, UK|Hanoi, Vietnam|Quito, Ecuador|Perth, Australia"
)
_CITIES = (
    "Lisbon|Hamburg|Osaka|Toronto|Nairobi|Denver|Lyon|Seville|Porto|Krakow|Melbourne|Oslo|Vienna|"
    "Dublin|Montreal|Bogota|Kyoto|Atlanta|Geneva|Prague|Lima|Accra|Tbilisi|Izmir|Pune|Busan|"
    "Tallinn|Antwerp|Valencia|Turin"
)
_CHINESE_CITIES = "上海|北京|成都|杭州|广州|西安|南京|青岛|厦门|重庆"
_CHINESE_PEOPLE = "李娜|王伟|张敏|陈静|刘洋|赵磊|周婷|吴昊"
_STREETS = "Elm Street|Harbour Road|Mill Lane|Cedar Avenue|Station Road|Garden Court|Lake Drive|Quarry Hill"
_ADJECTIVES = (
    "quiet|blue|northern|early|broken|golden|paper|urban|hidden|summer|silent|rapid|winter|red|"
    "open|second|amber|coastal"
)
_NOUNS = (
    "river|harbor|engine|garden|orchard|signal|bridge|market|lantern|archive|planet|meadow|"
    "compass|kitchen|forest|station|ledger|canyon|window|atlas"
)
_TOPICS = (
    "solar panels|budget review|onboarding|garden drainage|remote work|beehives|tax forms|soil erosion|"
    "bike repair|sleep apnea|roof insulation|school lunches|city trams|battery recycling|sourdough|"
    "migraine|choir rehearsal|used pianos|heat pumps|night photography|coral reefs|folding bikes|"
    "water filters|chess openings"
)
_MESSAGES = (
    "running ten minutes late|the keys are under the mat|please call me back|dinner is at eight|"
    "the parcel has arrived|bring an umbrella|the meeting is moved|no milk today|see you at the station|"
    "the build is green again|I left the charger at work|thanks for the flowers|the invoice is attached|"
    "we start without you"
)
_WORDS = "orders|billing|auth|search|report|metrics|upload|parser|gateway|worker|mailer|catalog"
_DOMAINS = "example.com|northwind.example|acme.example.org|data.example.net|shop.example.com"
_HEX = "0123456789abcdef"


def person(random: Random) -> str:
    return f"{_one(random, _GIVEN)} {_one(random, _FAMILY)}"


def given_name(random: Random) -> str:
    return _one(random, _GIVEN)


def town(random: Random) -> str:
    """City and state or country, as in `Austin, TX`."""
    return _one(random, _TOWNS)


def city(random: Random) -> str:
    return _one(random, _CITIES)


def chinese_city(random: Random) -> str:
    return _one(random, _CHINESE_CITIES)


def chinese_person(random: Random) -> str:
    return _one(random, _CHINESE_PEOPLE)


def address(random: Random) -> str:
    return f"{random.randint(1, 990)} {_one(random, _STREETS)}"


def title(random: Random) -> str:
    """A made-up title, as in `The Amber Ledger`."""
    return f"{random.choice(('The ', '', ''))}{_one(random, _ADJECTIVES).title()} {_one(random, _NOUNS).title()}"


def company(random: Random) -> str:
    return _one(random, _NOUNS).title() + random.choice((" Ltd", " & Co", " Labs", " Group", " Foods", "works"))


def topic(random: Random) -> str:
    return _one(random, _TOPICS)


def message(random: Random) -> str:
    return _one(random, _MESSAGES)


def slug(random: Random) -> str:
    """Two or three words with hyphens, now and then with a number."""
    parts = [_one(random, _ADJECTIVES), _one(random, _WORDS)]
    return "-".join([*parts, str(random.randint(1, 40))] if random.random() < 0.4 else parts)


def variable(random: Random) -> str:
    return f"{_one(random, _ADJECTIVES)}_{_one(random, _NOUNS)}"


def email(random: Random) -> str:
    return f"{_one(random, _GIVEN).lower()}.{_one(random, _FAMILY).lower()}@{_one(random, _DOMAINS)}"


def url(random: Random) -> str:
    return f"https://{_one(random, _DOMAINS)}/{_one(random, _WORDS)}/{random.randint(1, 9999)}"


def host(random: Random) -> str:
    return f"{_one(random, _WORDS)}{random.randint(1, 30)}.{_one(random, _DOMAINS)}"


def path(random: Random) -> str:
    suffix = random.choice((".csv", ".txt", ".json", ".pdf", ".log"))
    return f"/{random.choice(('home', 'srv', 'data', 'var'))}/{_one(random, _WORDS)}/{variable(random)}{suffix}"


def file_name(random: Random) -> str:
    return variable(random) + random.choice((".xlsx", ".pdf", ".docx", ".png", ".csv", ".py"))


def repository(random: Random) -> str:
    return f"{_one(random, _NOUNS)}/{_one(random, _WORDS)}-{_one(random, _NOUNS)}"


def branch(random: Random) -> str:
    return random.choice(("main", f"fix/{slug(random)}", f"feature/{slug(random)}", f"release-{version(random)}"))


def version(random: Random) -> str:
    return f"{random.randint(0, 9)}.{random.randint(0, 20)}.{random.randint(0, 9)}"


def commit(random: Random) -> str:
    return "".join(random.choices(_HEX, k=random.choice((7, 8, 12))))


def token(random: Random) -> str:
    """An identifier of mixed letters and digits, as in `kx7-29qd`."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(random.choices(letters, k=length)) for length in random.choice(((3, 4), (8,), (4, 4, 4))))


def uuid(random: Random) -> str:
    return "-".join("".join(random.choices(_HEX, k=length)) for length in (8, 4, 4, 4, 12))


def long_number(random: Random) -> str:
    return str(random.randrange(10**8, 10**12))


def address_ip(random: Random) -> str:
    return ".".join(str(random.randint(1, 254)) for _ in range(4))


def phone(random: Random) -> str:
    return random.choice(("+1-202-555-0{}", "+44 20 7946 0{}", "555-0{}")).format(random.randint(100, 199))


def plate(random: Random) -> str:
    letters = "".join(random.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=3))
    return f"{letters}-{random.randint(100, 9999)}"


def ticker(random: Random) -> str:
    return "".join(random.choices("ABCDEFGHIKLMNOPRSTVWXZ", k=random.choice((3, 4))))


def instant(random: Random) -> str:
    """A moment in ISO form."""
    year, month, day = random.randint(2024, 2027), random.randint(1, 12), random.randint(1, 28)
    return f"{year}-{month:02}-{day:02}T{random.randint(0, 23):02}:{random.choice((0, 15, 30)):02}:00Z"


def _one(random: Random, pool: str) -> str:
    return random.choice(pool.split("|"))
