"""Steps as bytes: the format on disk, and what damaged bytes are."""

from __future__ import annotations

import pytest

from macaron.conversation import Step
from macaron.errors import StoreError
from macaron.store.codec import CHANGING, Codec, Names
from tests.store.steps import make

STEP = make("s", make("p"), revision="sha256:00", status="incomplete", finish="length")
NAMES = Names(STEP.scope, STEP.session, STEP.id, STEP.digest, STEP.asked)
ON_DISK = (
    b'["p","s",4,"head","L2","sha256:00","incomplete","length",1,"contract",1.5,'
    b'[{"type":"message","role":"user","parts":[{"type":"text","text":"question s"}],"extra":{}}],'
    b'[{"type":"message","role":"assistant","parts":[{"type":"text","text":"answer s"}],"extra":{}}],1,1,'
    b'[{"kind":"answer","label":"L2","revision":"rev","started":1.0,"seconds":0.5,"queued":0.0,'
    b'"usage":{"prompt":10,"completion":5,"cached":0,"reasoning":0},"outcome":"ok"}]]'
)
"""Stores that exist were written like this: another order or another field needs a migration."""


def test_the_format_on_disk_is_the_one_that_stores_have() -> None:
    codec = Codec()
    assert codec.encode(STEP) == ON_DISK
    assert codec.decode(NAMES, ON_DISK) == STEP


def test_what_may_change_stands_last_in_a_step() -> None:
    assert Step.__struct_fields__[-len(CHANGING) :] == CHANGING


def test_an_emptied_body_keeps_everything_but_what_was_said() -> None:
    codec = Codec()
    emptied = codec.decode(NAMES, codec.empty(ON_DISK))
    assert (emptied.inputs, emptied.outputs) == (None, None)
    assert (emptied.label, emptied.hops, emptied.input_count) == (STEP.label, STEP.hops, 1)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", ON_DISK[:-1], ON_DISK[:-1] + b",1]", ON_DISK.replace(b"1.5", b'"x"')]
)
def test_bytes_that_are_no_step_are_an_error_that_names_it(body: bytes) -> None:
    with pytest.raises(StoreError, match="'s' is damaged"):
        Codec().decode(NAMES, body)
