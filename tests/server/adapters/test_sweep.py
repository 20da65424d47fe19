"""Files that nobody needs any more."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from macaron.registry.desired import Desired, Key, Registration, engine_name, register, remove_label
from macaron.registry.vault import Vault
from macaron.server.adapters.sweep import UNREGISTERED_SECONDS, Sweeper
from tests.registry.check.adapters import adapter
from tests.registry.desired.states import CARD, PROFILE
from tests.registry.vault.handling import admitted


class Kept:
    """An adapter in a vault, and a sweeper some seconds later."""

    def __init__(self, folder: Path) -> None:
        root = folder / "root"
        self.vault = Vault(folder / "vault")
        self.revision = admitted(self.vault, adapter(root / "one"), root).revision
        self.registered = register(
            Desired("hcp1:1"), Registration("L4", self.revision, tenant="ann", card=CARD), PROFILE
        )

    async def left(self, desired: Desired, listed: tuple[str, ...] = (), after: float = 0.0) -> int:
        await Sweeper(self.vault, lambda: time.time() + after).sweep(desired, listed)
        return len(await asyncio.to_thread(self.vault.list))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


async def test_what_is_registered_stays(kept: Kept) -> None:
    assert await kept.left(kept.registered, after=10 * UNREGISTERED_SECONDS) == 1


async def test_what_nobody_registered_goes_after_its_time(kept: Kept) -> None:
    assert await kept.left(Desired("hcp1:1")) == 1
    assert await kept.left(Desired("hcp1:1"), after=UNREGISTERED_SECONDS + 2) == 0


async def test_what_was_removed_goes_when_the_engine_has_let_it_go(kept: Kept) -> None:
    removed = remove_label(kept.registered, Key("L4", "ann"), ())
    assert await kept.left(removed, (engine_name("L4", kept.revision),)) == 1
    assert await kept.left(removed, ("L0",)) == 0


async def test_what_another_tenant_registered_stays_for_it(kept: Kept) -> None:
    wanted = Registration("L5", kept.revision, tenant="bob", card=CARD)
    both = register(kept.registered, wanted, PROFILE)
    assert await kept.left(remove_label(both, Key("L5", "bob"), ())) == 1
