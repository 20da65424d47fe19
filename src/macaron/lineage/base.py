"""What a lineage says."""

from __future__ import annotations

from msgspec import Struct


class AnswerUse(Struct, frozen=True):
    """An answer: of the step that the store has, or of the turn that was recorded.

    Attributes:
        recorded: whether it is among the recorded turns.
    """

    id: str
    tenant: str
    session: str
    turn: str
    label: str
    revision: str
    status: str
    created: float
    contract: str
    generation: int
    recorded: bool


class AdapterUse(Struct, frozen=True):
    """An adapter.

    Attributes:
        labels: what it is, or was, registered for.
        places: folders where its bytes lie.
        answers, recorded: how many it gave that the store still has, and that are recorded; None where there is no
            file to count them in.
    """

    revision: str
    labels: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    answers: int | None = None
    recorded: int | None = None


class SourceLine(Struct, frozen=True):
    """A source of a data set: its licence, and where it is recorded turns, how many and on what consents."""

    name: str
    origin: str
    licence: str
    rows: int
    turns: int = 0
    consents: tuple[str, ...] = ()


class DataLine(Struct, frozen=True):
    """A data set of a run.

    Attributes:
        sha256: as the run noted it.
        known: whether its manifest was found.
    """

    path: str
    sha256: str
    known: bool
    name: str = ""
    recipe_sha256: str = ""
    sources: tuple[SourceLine, ...] = ()


class RunLine(Struct, frozen=True):
    """A training run.

    Attributes:
        path: its folder, or the adapter beside which its record lies; empty where only its id is known.
        revision: what came out of it.
    """

    id: str
    path: str
    status: str = ""
    created: str = ""
    base: str = ""
    parent: str = ""
    revision: str = ""
    data: tuple[DataLine, ...] = ()


class TurnLine(Struct, frozen=True):
    """A recorded turn that an adapter was trained on, and whether it is still kept."""

    id: str
    data: str
    kept: bool


class Lineage(Struct, frozen=True):
    """The whole line, as far as it can be followed from here.

    Attributes:
        asked: what was asked for.
        runs: from the one that made the adapter back to the first.
        turns: recorded turns that the adapter was trained on.
        fed: runs that the answer was trained on in, and `sets`, data sets that it went into.
        problems: what could not be followed, in words.
    """

    asked: str
    answer: AnswerUse | None
    adapter: AdapterUse | None
    runs: tuple[RunLine, ...]
    turns: tuple[TurnLine, ...]
    fed: tuple[RunLine, ...] = ()
    sets: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
