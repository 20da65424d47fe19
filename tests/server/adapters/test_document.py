"""The document in the store."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from macaron.errors import Conflict, StoreError
from macaron.registry.desired import Desired, Registration, register
from macaron.server.adapters.document import Document, Edit
from macaron.store import open_store
from macaron.store.base import Limits, Store
from tests.registry.desired.states import CARD, PROFILE, revision


def store() -> Store:
    return open_store("memory:", limits=Limits(), durability="normal")


def adding(label: str) -> Edit:
    wanted = Registration(label, revision(1), card=CARD)
    return lambda desired: register(desired, wanted, PROFILE)


async def test_the_first_to_open_it_writes_it_and_the_next_leaves_it() -> None:
    kept = store()
    first = await Document(kept, "hcp1:1", PROFILE).open()
    second = await Document(kept, "hcp1:1", PROFILE).open()
    assert first == second
    assert (first.generation, first.desired) == (1, Desired("hcp1:1"))


async def test_another_contract_carries_it_over_under_a_new_generation() -> None:
    kept = store()
    await Document(kept, "hcp1:1", PROFILE).open()
    await Document(kept, "hcp1:1", PROFILE).change(adding("L7"))
    found = await Document(kept, "hcp1:2", PROFILE).open()
    assert (found.generation, found.desired.contract) == (3, "hcp1:2")
    assert [entry.label for entry in found.desired.entries] == ["L7"]


async def test_changes_at_once_are_all_there() -> None:
    kept = store()
    await Document(kept, "hcp1:1", PROFILE).open()
    documents = [Document(kept, "hcp1:1", PROFILE) for _ in range(8)]
    changes = (each.change(adding(f"L{9 + place}")) for place, each in enumerate(documents))
    await asyncio.gather(*changes)
    found = await documents[0].read()
    assert sorted(entry.label for entry in found.desired.entries) == sorted(f"L{9 + place}" for place in range(8))
    assert found.generation == 9


async def test_a_change_that_changes_nothing_is_no_new_generation() -> None:
    kept = store()
    document = Document(kept, "hcp1:1", PROFILE)
    before = await document.open()
    assert await document.change(lambda desired: desired) == before


async def test_what_a_change_refuses_is_not_written() -> None:
    kept = store()
    document = Document(kept, "hcp1:1", PROFILE)
    before = await document.open()

    def refuse(_: Desired) -> Desired:
        raise Conflict("no")

    with pytest.raises(Conflict, match="no"):
        await document.change(refuse)
    assert await document.read() == before


async def test_a_service_of_another_contract_changes_nothing() -> None:
    kept = store()
    old = Document(kept, "hcp1:1", PROFILE)
    await old.open()
    await Document(kept, "hcp1:2", PROFILE).open()
    with pytest.raises(Conflict, match=r"hcp1:2 is in force.*hcp1:1.*restart"):
        await old.change(lambda desired: replace(desired, bound=()))


async def test_a_document_that_cannot_be_read_is_named() -> None:
    kept = store()
    await kept.compare_and_set(0, b"no document")
    with pytest.raises(StoreError, match="registry in the store cannot be used"):
        await Document(kept, "hcp1:1", PROFILE).open()
