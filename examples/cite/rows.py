"""Rows for a specialist that writes BibTeX: invented references in several styles, and the entry for each.

A recipe names `train` and `held_out`. They share no style, no name, no journal and no word of a title, so that what is
measured is reading a reference, not remembering one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from macaron.train.data.rows import SftRow
from macaron.train.data.source import BuildContext


class Bank(NamedTuple):
    """What works are made from."""

    onsets: str
    endings: str
    given: str
    adjectives: str
    nouns: str
    places: str
    fields: str
    publishers: str


TRAIN = Bank(
    onsets="Bar Dal Fen Gar Hol Jan Kes Lin Mor Nor Ost Per Ras Sal Tor Ul Var Wes Yar Zim Bren Cal Dor Ek Fal Hin",
    endings="berg ton ova sen ik man ado escu ley strom ara etti wood mann ski quist",
    given="Mara Daniel Ines Tomas Aylin Jonas Priya Lucas Hana Peter Noor Elif Marcus Ada Ravi Clara Omar Julia Sven",
    adjectives="Slow Hidden Early Broken Quiet Northern Common Late Small Distant Shared Frozen Open Simple Heavy",
    nouns="Rivers Markets Signals Gardens Harbours Letters Bridges Machines Forests Songs Maps Islands Prices Storms",
    places="Lisbon,the Alps,Rural Kenya,Old Towns,the Baltic,New Cities,Dry Seasons,Border Regions,Coastal Villages",
    fields="Hydrology,Urban History,Applied Optics,Soil Science,Social Choice,Field Linguistics,Marine Botany,Transit",
    publishers="Harrow Press,Blue Lantern Books,Tarn University Press,Meridian House,Oakfield,Stonebridge Academic",
)
HELD_OUT = Bank(
    onsets="Ash Cor Dun Ev Grim Hal Ir Kol Lam Mid Nev Os Pol Quin Rud Sten Tal Umb Vin Wal Xan Yor",
    endings="field sson enko ides inski aux bury elli gaard off ram vic",
    given="Nadia Oliver Sofia Emil Leila Victor Amara Felix Greta Hugo Irina Karim Lena Mateo Paula Theo Vera Yusuf",
    adjectives="Bright Narrow Ancient Silent Public Southern Rapid Modern Deep Fragile Urban Recent Wild",
    nouns="Deserts Theatres Engines Archives Orchards Glaciers Networks Taxes Canals Dialects Windows Colonies",
    places="Naples,the Andes,Postwar Japan,Border Schools,the Sahel,Mountain Parishes,Wet Summers,Island States",
    fields="Glaciology,Labour Studies,Acoustics,Plant Ecology,Public Law,Numerical Methods,Music Theory,Transport",
    publishers="Larkspur Press,Granite Books,Vale University Press,Northgate,Fern and Fable,Ironwood Academic",
)


class Work(NamedTuple):
    """Something to cite. `authors` are (family, given)."""

    kind: str
    authors: tuple[tuple[str, str], ...]
    title: str
    venue: str
    year: int
    volume: int
    pages: tuple[int, int]

    @property
    def entry(self) -> str:
        """The BibTeX entry, in the one layout that the specialist learns."""
        families = " and ".join(f"{family}, {given}" for family, given in self.authors)
        key = f"{self.authors[0][0].lower()}{self.year}"
        fields = [
            ("author", families),
            ("title", self.title),
            (VENUES[self.kind], self.venue),
            ("year", str(self.year)),
        ]
        if self.kind == "article":
            fields.append(("volume", str(self.volume)))
        if self.kind != "book":
            fields.append(("pages", f"{self.pages[0]}--{self.pages[1]}"))
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields)
        return f"```bibtex\n@{self.kind}{{{key},\n{lines}\n}}\n```"


VENUES = {"article": "journal", "book": "publisher", "inproceedings": "booktitle"}


def work(bank: Bank, random: Random) -> Work:
    """An invented work."""
    kind = random.choice(("article", "article", "book", "inproceedings"))
    first = random.randint(1, 480)
    return Work(
        kind=kind,
        authors=tuple(_author(bank, random) for _ in range(random.choice((1, 1, 2, 2, 3)))),
        title=_title(bank, random),
        venue=_venue(kind, bank, random),
        year=random.randint(1961, 2025),
        volume=random.randint(1, 90),
        pages=(first, first + random.randint(3, 40)),
    )


def _author(bank: Bank, random: Random) -> tuple[str, str]:
    family = random.choice(bank.onsets.split()) + random.choice(bank.endings.split())
    return family, random.choice(bank.given.split())


def _title(bank: Bank, random: Random) -> str:
    adjective, noun = random.choice(bank.adjectives.split()), random.choice(bank.nouns.split())
    other, place = random.choice(bank.nouns.split()), random.choice(bank.places.split(","))
    shapes = (f"{adjective} {noun} in {place}", f"On {adjective} {noun}", f"{noun} and {other} of {place}")
    return random.choice((*shapes, f"{adjective} {noun}: A Study of {other}", f"How {noun} Shape {place}"))


def _venue(kind: str, bank: Bank, random: Random) -> str:
    field = random.choice(bank.fields.split(","))
    if kind == "book":
        return random.choice(bank.publishers.split(","))
    if kind == "article":
        return random.choice((f"Journal of {field}", f"Annals of {field}", f"{field} Review", f"{field} Letters"))
    return random.choice((f"Proceedings of the Conference on {field}", f"Workshop on {field}"))


class Style(NamedTuple):
    """How a reference is written.

    Attributes:
        inverted: whether family names come first.
        between, last: what stands between authors, and before the last one.
        head: what every kind of work begins with.
        article, inproceedings, book: how it goes on.
    """

    inverted: bool
    between: str
    last: str
    head: str
    article: str
    inproceedings: str
    book: str

    def write(self, item: Work) -> str:
        """The reference."""
        names = [f"{family}, {given}" if self.inverted else f"{given} {family}" for family, given in item.authors]
        authors = self.last.join([self.between.join(names[:-1]), names[-1]] if len(names) > 1 else names)
        shape: str = self.head + getattr(self, item.kind)
        first, last = item.pages
        return shape.format(
            authors=authors,
            title=item.title,
            venue=item.venue,
            volume=item.volume,
            year=item.year,
            first=first,
            last=last,
        )


STYLES = {
    "year-first": Style(
        True, ", ", ", and ", "{authors} ({year}). {title}. ",
        "{venue}, {volume}, {first}-{last}.", "In {venue} (pp. {first}-{last}).", "{venue}."),
    "quoted": Style(
        True, ", ", ", and ", '{authors}. "{title}." ',
        "{venue} {volume} ({year}): {first}-{last}.", "{venue}, {year}, {first}-{last}.", "{venue}, {year}."),
    "numbered": Style(
        False, ", ", " and ", '[7] {authors}, "{title}," ',
        "{venue}, vol. {volume}, pp. {first}-{last}, {year}.", "in {venue}, {year}, pp. {first}-{last}.",
        "{venue}, {year}."),
    "semicolons": Style(
        False, "; ", "; ", "{authors}: {title}. ",
        "{venue} {volume}, {first}-{last} ({year})", "In: {venue}, pp. {first}-{last} ({year})", "{venue} ({year})"),
    "prose": Style(
        False, ", ", " and ", "In {year} {authors} published {title} ",
        "in {venue}, volume {volume}, pages {first} to {last}.", "at the {venue}, pages {first} to {last}.",
        "with {venue}."),
    "lines": Style(
        False, ", ", " and ", "{title}\n{authors}\n",
        "{venue}, {volume}\n{first}-{last}\n{year}", "{venue}\n{first}-{last}\n{year}", "{venue}\n{year}"),
    "slashes": Style(
        False, " / ", " / ", "{authors}, {title}, ",
        "{venue} {volume}/{year}, S. {first}-{last}", "{venue} {year}, S. {first}-{last}", "{venue} {year}"),
    "title-first": Style(
        False, ", ", " and ", "{title}, by {authors}. ",
        "{venue} {volume}, pp {first}-{last}, {year}.", "{venue} {year}, pp {first}-{last}.", "{venue}, {year}."),
    "fields": Style(
        False, ", ", " and ", "title: {title}; authors: {authors}; ",
        "journal: {venue}; vol: {volume}; pages: {first}-{last}; year: {year}",
        "conference: {venue}; pages: {first}-{last}; year: {year}", "publisher: {venue}; year: {year}"),
    "see": Style(
        False, ", ", " and ", "see {authors}, '{title}', ",
        "{venue} {volume} ({year}), {first}-{last}", "{venue} ({year}), {first}-{last}", "({venue}, {year})"),
}  # fmt: skip
OTHER_STYLES = {
    "dotted": Style(
        False, ", ", " and ", "{authors}. {title}. ",
        "{venue}. {year};{volume}:{first}-{last}.", "{venue}; {year}. p. {first}-{last}.", "{venue}; {year}."),
    "comma": Style(
        True, ", ", " and ", "{authors}, {year}, {title}, ",
        "{venue}, {volume}, {first}-{last}", "{venue}, {first}-{last}", "{venue}"),
    "spoken": Style(
        False, ", ", " and ", "{title} is by {authors}, ",
        "it is on pages {first} to {last} of volume {volume} of {venue} from {year}.",
        "given at the {venue} in {year}, pages {first} to {last}.", "a book from {venue}, {year}."),
    "dashes": Style(
        False, ", ", " and ", "{authors} - {title} - ",
        "{venue} - vol. {volume} - {year} - {first}-{last}", "{venue} - {year} - {first}-{last}", "{venue} - {year}"),
}  # fmt: skip
ASKED = (
    "Give me the BibTeX entry for this reference:\n\n{}", "BibTeX please: {}", "Turn this into BibTeX.\n{}",
    "I need this in my .bib file: {}", "Make a bib entry of: {}", "How do I cite this in LaTeX? {}",
    "Convert the reference to BibTeX:\n{}", "@bib for {}",
)  # fmt: skip
OTHERWISE_ASKED = (
    "Please write a BibTeX entry for the following work. {}", "What goes into references.bib for this? {}",
    "bibtex: {}", "Add this citation to my bibliography file:\n\n{}",
)  # fmt: skip


def train(context: BuildContext) -> Iterator[SftRow]:
    """Rows to learn from."""
    return _rows(context, TRAIN, STYLES, ASKED)


def held_out(context: BuildContext) -> Iterator[SftRow]:
    """Rows to be measured on."""
    return _rows(context, HELD_OUT, OTHER_STYLES, OTHERWISE_ASKED)


def _rows(context: BuildContext, bank: Bank, styles: dict[str, Style], asked: Sequence[str]) -> Iterator[SftRow]:
    names = list(styles)
    for number in range(context.limit):
        item, style = work(bank, context.random), names[number % len(names)]
        request = context.random.choice(asked).format(styles[style].write(item))
        messages = ({"role": "user", "content": request}, {"role": "assistant", "content": item.entry})
        yield SftRow(id=f"{style}-{number}", source="cite", group=f"{style}-{item.title}", messages=messages)
