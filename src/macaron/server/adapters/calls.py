"""Adapters of an engine that loads them by calls: vLLM and SGLang."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from macaron.engine.base import Pluggable
from macaron.errors import MacaronError
from macaron.registry.desired import Resident
from macaron.server.adapters.reconcile import Changed


class CallsPlug:
    """`Plug` over the engine's calls.

    Args:
        replica: the engine's address.
        root: where the engine finds the vault's folder.
    """

    def __init__(self, engine: Pluggable, replica: str, root: PurePath) -> None:
        self._engine = engine
        self._replica = replica
        self._root = root

    @property
    def replica(self) -> str:
        """See `Plug.replica`."""
        return self._replica

    async def listed(self) -> frozenset[str]:
        """See `Plug.listed`."""
        return await self._engine.list_adapters()

    async def change(self, load: Sequence[Resident], unload: Sequence[str]) -> Changed:
        """See `Plug.change`. An engine that refuses one adapter may take the next."""
        for name in unload:
            await self._engine.unload_adapter(name)
        failed = {}
        for item in load:
            try:
                await self._engine.load_adapter(item.engine_name, str(self._root / item.folder))
            except MacaronError as error:
                failed[item.engine_name] = error.message
        return Changed(failed)
