"""The registry's document in the store: read, and changed by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from macaron.errors import Conflict
from macaron.registry.cards import Registry
from macaron.registry.desired import Desired, carry, decode, encode
from macaron.store.base import Store

ATTEMPTS = 32

Edit = Callable[[Desired], Desired]


class InForce(NamedTuple):
    """The document and the generation it has in the store."""

    generation: int
    desired: Desired


class Document:
    """The one document of a store, under one contract.

    Args:
        contract: digest of the contract that is served.
        profile: the contract's own specialists.
    """

    def __init__(self, store: Store, contract: str, profile: Registry) -> None:
        self._store = store
        self._contract = contract
        self._profile = profile
        self._known: InForce | None = None

    async def open(self) -> InForce:
        """Put this contract in force. The first worker writes the document, or carries that of another contract over.

        Raises:
            StoreError: the document cannot be read.
            Conflict: another service keeps replacing it.
        """
        return await self._replace(lambda desired: carry(desired, self._contract, self._profile))

    async def read(self) -> InForce:
        """The document in force; decoded only where the generation is a new one.

        Raises:
            StoreError: it cannot be read.
        """
        config = await self._store.config()
        if self._known is None or config.generation != self._known.generation:
            empty = Desired(self._contract)
            self._known = InForce(config.generation, decode(config.document) if config.document else empty)
        return self._known

    async def change(self, edit: Edit) -> InForce:
        """Apply `edit` to the newest document; it is called again where somebody else was quicker. What it raises is
        raised here, and nothing is written then.

        Raises:
            StoreError: the document cannot be read or written.
            Conflict: the document is another contract's, or too many change it at once.
        """
        return await self._replace(lambda desired: edit(self._own(desired)))

    def _own(self, desired: Desired) -> Desired:
        if desired.contract != self._contract:
            message = (
                f"contract {desired.contract} is in force by now, this service serves {self._contract}; restart it"
            )
            raise Conflict(message, param="contract", code="other_contract")
        return desired

    async def _replace(self, edit: Edit) -> InForce:
        for _ in range(ATTEMPTS):
            current = await self.read()
            wanted = edit(current.desired)
            if current.generation and wanted == current.desired:
                return current
            document = encode(wanted)
            config = await self._store.compare_and_set(current.generation, document)
            if config.generation == current.generation + 1 and config.document == document:
                self._known = InForce(config.generation, wanted)
                return self._known
        raise Conflict("The registry keeps changing; is another service using this store?", code="config_conflict")
