"""Where keys stand in a text."""

from __future__ import annotations

from macaron.hcp.lines import dotted, key_lines, line_of

TEXT = '''\
version = 1
[mol]
base = "a = 1"
words = [
    "x = 1",
    ["[not] a = table"],
]
"quoted key" = 2
text = """
inside = 1
"""
after = 3
[mol.route] # a comment
kwargs = { shape = 1 }
[[mol.adapters]]
label = "L0"
[[mol.adapters]]
label = "L1"
[mol.adapters.card]
x.y = 1
'''


def test_every_key_is_found_at_its_line() -> None:
    lines = {dotted(path): line for path, line in key_lines(TEXT).items()}
    assert lines == {
        "version": 1,
        "mol": 2,
        "mol.base": 3,
        "mol.words": 4,
        "mol.quoted key": 8,
        "mol.text": 9,
        "mol.after": 12,
        "mol.route": 13,
        "mol.route.kwargs": 14,
        "mol.adapters": 15,
        "mol.adapters.0": 15,
        "mol.adapters.0.label": 16,
        "mol.adapters.1": 17,
        "mol.adapters.1.label": 18,
        "mol.adapters.1.card": 19,
        "mol.adapters.1.card.x.y": 20,
    }


def test_a_key_that_is_not_written_is_placed_at_the_table_around_it() -> None:
    lines = key_lines(TEXT)
    assert line_of(("mol", "route", "kwargs", "shape"), lines) == 14
    assert line_of(("mol", "adapters", 1, "name"), lines) == 17
    assert line_of(("engine", "kind"), lines) is None
