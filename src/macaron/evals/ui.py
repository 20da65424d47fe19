"""The suite `ui`: briefs for an interface, each answered by a card that must be fit to run. Nothing is rendered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.evals.record import CaseResult
from macaron.evals.suite import Answer, Case
from macaron.evals.tsx import check_tsx, find_card

HELD_OUT: Final = "ui-briefs"
OWN: Final = "own-briefs"
MAX_OUTPUT: Final = 8_000
MAX_FILE_BYTES: Final = 16 * 1024 * 1024


class Brief(Struct, frozen=True):
    """A line of a briefs file. `surface` says where the card would stand; nothing depends on it."""

    id: str
    text: str
    surface: str = ""


class UiSuite:
    """Briefs that other people wrote, from a file, and sixty that come with the project as a source of their own.

    A case passes when its answer holds a card that parses as TSX, exports a component by default, imports only what
    UI4A offers and uses nothing undefined. `detail` keeps every reason, and whether the card is merely a copy of one of
    the examples, which passes all the same: a reader of the table should know how often that happened.
    """

    name = "ui"
    max_tokens = 700

    def __init__(self, briefs: Path | None = None, count: int = 180) -> None:
        """Take `count` briefs of the JSONL file `briefs`; the same file gives the same ones. Without a file, only our
        own.

        Forty briefs of the file that the tests name were read before the training data was written. They are left out,
        by the ids in `data/seen_briefs.txt`.
        """
        self._briefs = briefs
        self._count = count

    def cases(self) -> Sequence[Case]:
        """Every case; the file is read now.

        Raises:
            ConfigError: the file cannot be read, a line of it is broken, or an id is there twice.
        """
        held_out = _sample(_unseen(_read(self._briefs)), self._count) if self._briefs else []
        return [_case(HELD_OUT, brief) for brief in held_out] + [_case(OWN, brief) for brief in own_briefs()]

    def examples(self) -> Sequence[dict[str, Any]]:
        return [
            {"role": role, "content": content}
            for brief, card in _EXAMPLES
            for role, content in (("user", brief), ("assistant", f"```tsx\n{card}\n```"))
        ]

    def check(self, case: Case, answer: Answer, subject: str) -> CaseResult:
        card = find_card(answer.text)
        if card is None:
            return _result(case, answer, subject, ("no card",), {})
        report = check_tsx(card)
        detail: dict[str, Any] = {"modules": list(report.modules), "copied": card in {code for _, code in _EXAMPLES}}
        if report.undefined:
            detail["undefined"] = list(report.undefined)[:20]
        return _result(case, answer, subject, report.reasons, detail)


def own_briefs() -> list[Brief]:
    """The briefs that come with the project, in English, about nothing that cards were trained on."""
    data = (files("macaron.evals") / "data" / "own_briefs.jsonl").read_bytes()
    return list(_decoded(data, OWN))


def _read(path: Path) -> list[Brief]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"the briefs file {str(path)!r} cannot be read: {error.strerror}; name another.") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"the briefs file {str(path)!r} is larger than {MAX_FILE_BYTES:,} bytes; shorten it.")
    return list(_decoded(data, str(path)))


def _decoded(data: bytes, place: str) -> Iterator[Brief]:
    seen: set[str] = set()
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            brief = msgspec.json.decode(line, type=Brief)
        except msgspec.DecodeError as error:
            raise ConfigError(
                f"{place}:{number} is not a brief with id and text: {error}; correct the line."
            ) from error
        if brief.id in seen:
            raise ConfigError(f"{place}:{number} has the id {brief.id[:80]!r} of an earlier line; give it another.")
        seen.add(brief.id)
        yield brief


def _unseen(briefs: Sequence[Brief]) -> list[Brief]:
    seen = set((files("macaron.evals") / "data" / "seen_briefs.txt").read_text("utf-8").split())
    return [brief for brief in briefs if brief.id not in seen]


def _sample(briefs: Sequence[Brief], count: int) -> list[Brief]:
    """The first `count` in the order of the hashes of their ids, so that adding lines moves few of the others."""
    return sorted(briefs, key=lambda brief: hashlib.sha256(brief.id.encode()).digest())[:count]


def _case(source: str, brief: Brief) -> Case:
    language = "zh" if any("\u4e00" <= letter <= "\u9fff" for letter in brief.text) else "en"
    return Case(
        id=f"{source}/{brief.id}",
        source=source,
        messages=({"role": "user", "content": brief.text},),
        language=language,
    )


def _result(case: Case, answer: Answer, subject: str, reasons: Sequence[str], detail: dict[str, Any]) -> CaseResult:
    return CaseResult(
        case=case.id,
        source=case.source,
        subject=subject,
        passed=not reasons,
        output=answer.text[:MAX_OUTPUT],
        reason=_main_reason(answer, reasons),
        seconds=answer.seconds,
        tokens=answer.tokens,
        detail={**detail, "reasons": list(reasons)} if len(reasons) > 1 else detail,
    )


def _main_reason(answer: Answer, reasons: Sequence[str]) -> str:
    """The first reason; where the answer ran out of tokens that explains a card that is not whole."""
    if reasons and answer.status == "incomplete":
        return "cut off"
    return reasons[0] if reasons else ""


_EXAMPLES: Final = (
    (
        "a switch between Celsius and Fahrenheit for the aquarium, now at 25 degrees",
        """import { useState } from "react";
import { Card, Stat, Switch } from "$ui4a/ui";

export default function App() {
  const [metric, setMetric] = useState(true);
  return (
    <Card title="Aquarium">
      <Switch label="Celsius" checked={metric} onChange={setMetric} />
      <Stat label="Water" value={metric ? "25 °C" : "77 °F"} />
    </Card>
  );
}""",
    ),
    (
        "给合唱团三个声部点名",
        """import { useState } from "react";
import { Button, Card, Row } from "$ui4a/ui";
import { sendAction } from "$ui4a/chat";

const parts = ["高音", "中音", "低音"];

export default function App() {
  const [here, setHere] = useState([]);
  return (
    <Card title="点名">
      {parts.map((part) => (
        <Row key={part}>
          <span>{part}</span>
          <Button onClick={() => setHere([...here, part])}>{here.includes(part) ? "到" : "签到"}</Button>
        </Row>
      ))}
      <Button variant="primary" onClick={() => sendAction("save", { here })}>保存</Button>
    </Card>
  );
}""",
    ),
)
