"""What counts as a card, and that no source, however hostile, harms the check."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.evals.tsx import MAX_BYTES, UI4A, check_tsx, find_card

CARD = """import { useState } from "react";
import { Button, Card } from "$ui4a/ui";

export default function App() {
  const [count, setCount] = useState(0);
  return (
    <Card title="Count">
      <Button onClick={() => setCount(count + 1)}>{count}</Button>
    </Card>
  );
}
"""


@pytest.mark.parametrize(
    "source",
    [
        CARD,
        "export default () => <p>hi</p>;",
        "export default function () { return <></> }",
        "const App = () => <p />;\nexport default App;",
        "function App() { return <p /> }\nexport { App as default };",
        'import { memo } from "react";\nexport default memo(function App() { return <p /> });',
        'import { Component } from "react";\nexport default class App extends Component { render() { return <p /> } }',
        'import React, { type FC } from "react";\nconst App: FC = React.memo(() => <p />);\nexport default App;',
        'import * as UI from "$ui4a/ui";\nexport default () => <UI.Card />;',
        'import { Card as Box } from "$ui4a/ui";\nexport default () => <Box />;',
        "const { A, b: B } = parts;\nexport default ({ as: C = A, ...rest }) => <A><B /><C {...rest} /></A>;",
        "export default () => items.map((Item) => <Item key={1} />);",
        "const App = () => <p />;\nexport default App as unknown;",
    ],
)
def test_cards_that_are_fit_to_run_are_clean(source: str) -> None:
    assert check_tsx(source).reasons == ()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("export default function App() { return <p>; }", "does not parse"),
        (CARD[:-30], "does not parse"),
        ("Here is your card.", "does not parse"),
        ("function App() { return <p /> }", "no default export"),
        ("export function App() { return <p /> }", "no default export"),
        ("export default 5; <p />", "the default export is not a component"),
        ("const App = { a: 1 }; export default App; <p />", "the default export is not a component"),
        ("const a = a; export default a; <p />", "the default export is not a component"),
        ("export default App; export default App; function App() { return <p /> }", "several default exports"),
        ("export default function App() { return 1 }", "no JSX"),
        ('import x from "lodash";' + CARD, "imports a module that is not there"),
        ('import "./style.css";' + CARD, "imports a module that is not there"),
        ('const m = await import("fs");' + CARD, "imports a module that is not there"),
        ('const m = require("fs");' + CARD, "imports a module that is not there"),
        ('export * from "fs";' + CARD, "imports a module that is not there"),
        ('export { a } from "fs";' + CARD, "imports a module that is not there"),
        ('import fs = require("fs");' + CARD, "imports a module that is not there"),
        ("const m = import(name);" + CARD, "imports a computed module"),
        ("const m = import(`react`);" + CARD, "imports a computed module"),
        ('const m = require("re" + "act");' + CARD, "imports a computed module"),
        ('const m = import("re\\x61ct");' + CARD, "imports a computed module"),
        ("const load = require;" + CARD, "uses require as a value"),
        ('import { Carousel } from "$ui4a/ui";' + CARD, "imports a name that is not there"),
        ('export { Carousel } from "$ui4a/ui";' + CARD, "imports a name that is not there"),
        ('import UI from "$ui4a/ui";' + CARD, "imports a default that is not there"),
        ("export default () => <Foo />;", "uses what is not defined"),
        ("export default () => <Foo.Bar />;", "uses what is not defined"),
        ("export default () => { useState(1); return <p /> };", "uses what is not defined"),
        ("x" * (MAX_BYTES + 1), "larger than 64 KB"),
    ],
)
def test_a_faulty_card_says_what_is_wrong(source: str, reason: str) -> None:
    assert reason in check_tsx(source).reasons


def test_undefined_names_and_modules_are_listed_once() -> None:
    report = check_tsx('import { Card } from "$ui4a/ui";\nexport default () => <Card><A /><A /><B.c /></Card>;')
    assert report.undefined == ("A", "B")
    assert report.modules == ("$ui4a/ui",)


def test_modules_are_counted_wherever_they_are_named() -> None:
    source = 'import "react"; import("$ui4a/chat"); require("$ui4a/state"); export { LaTeX } from "$ui4a/ui/katex";'
    assert set(check_tsx(source).modules) == {"react", "$ui4a/chat", "$ui4a/state", "$ui4a/ui/katex"}


@pytest.mark.parametrize("module", sorted(UI4A))
def test_every_name_that_ui4a_offers_may_be_imported(module: str) -> None:
    names = ", ".join(sorted(UI4A[module]))
    assert check_tsx(f'import {{ {names} }} from "{module}";\nexport default () => <p />;').clean


@pytest.mark.parametrize(
    "source",
    [
        "(" * 60_000,
        '"' * 60_000,
        "<a>" * 20_000,
        "a<b " * 15_000,
        "`${" * 20_000,
        "x;" * 30_000,
        "a" + "()" * 30_000,
        "require(" * 7_000 + '"x"' + ")" * 7_000,
        "const f = " + "({b = " * 5_000 + "1" + "}) => 1" * 5_000,
        "export default " + "(" * 15_000 + "App" + ")" * 15_000 + "; function App() { return <p /> }",
        "export default " + "memo(" * 9_000 + "App" + ")" * 9_000,
        "export default () => " + "<a>" * 9_000 + "</a>" * 9_000,
        CARD + "\0",
        "\ud800" + CARD,
    ],
)
def test_hostile_sources_are_decided_in_bounded_time(source: str) -> None:
    start = time.perf_counter()
    check_tsx(source)
    assert time.perf_counter() - start < 10


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.integers(0, len(CARD)))
def test_any_text_in_a_card_is_decided_without_an_error(text: str, position: int) -> None:
    report = check_tsx(CARD[:position] + text + CARD[position:])
    assert report.clean is (report.reasons == ())


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="`tsxui4a/ \nexport default", max_size=200))
def test_a_found_card_is_always_part_of_the_answer(text: str) -> None:
    card = find_card(text)
    assert card is None or card in text


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(CARD.rstrip()) - 1))
def test_no_proper_prefix_of_a_card_is_clean(length: int) -> None:
    assert not check_tsx(CARD[:length]).clean


@pytest.mark.parametrize(
    ("answer", "card"),
    [
        ("```tsx\nA\n```", "A"),
        ("```ui4a/tsx\nA\n```\nthere", "A"),
        ("````tsx\nA\n```\nB\n````", "A\n```\nB"),
        ("Here you are:```tsx\nA\n```", "A"),
        ("```tsx import x\nA\n```", "import x\nA"),
        ("```tsx export default () => <a/>```", "export default () => <a/>"),
        ("use ```tsx``` blocks:\n```tsx\nexport default A\n```", "export default A"),
        ("```js\nA\n```\n```tsx\nB\n```", "B"),
        ("```tsx\nA\n```\n```tsx\nexport default B\n```", "export default B"),
        ("```tsx\nA, cut off", "A, cut off"),
        ("import a from 'b'\nexport default c", "import a from 'b'\nexport default c"),
        ("```js\nA\n```", None),
        ("```", None),
        ("a sentence about imports", None),
        ("", None),
    ],
)
def test_a_card_is_found_in_an_answer(answer: str, card: str | None) -> None:
    assert find_card(answer) == card


@pytest.mark.parametrize("answer", ["`" * 200_000, "```\n" * 60_000, " ```a" * 60_000, "```tsx\n" * 40_000])
def test_answers_full_of_fences_are_read_in_bounded_time(answer: str) -> None:
    start = time.perf_counter()
    find_card(answer)
    assert time.perf_counter() - start < 5
