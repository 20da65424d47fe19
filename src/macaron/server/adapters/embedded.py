"""Adapters of the embedded engine, which takes none while it runs: the child is replaced by one with another list."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from macaron.engine.llamacpp.engine import LlamaCppEngine
from macaron.errors import EngineError, MacaronError
from macaron.profiles.adapters import gguf_adapter
from macaron.registry.desired import Resident
from macaron.server.adapters.reconcile import Changed
from macaron.server.control import ask_control

REPLICA = "embedded"
DRAIN_SECONDS = 20.0
"""How long hops that run may take to end before a restart is put off; the others wait for as long."""

RESTART_SECONDS = 300.0


class EmbeddedPlug:
    """`Plug` by a restart of the child.

    Args:
        control: the supervisor's socket.
        vault: folder of all adapters.
        weights: the base, for which adapters are converted.
    """

    def __init__(self, engine: LlamaCppEngine, control: Path, vault: Path, weights: Path) -> None:
        self._engine = engine
        self._control = control
        self._vault = vault
        self._weights = weights

    @property
    def replica(self) -> str:
        """See `Plug.replica`."""
        return REPLICA

    async def listed(self) -> frozenset[str]:
        """See `Plug.listed`. A child that died is started again with the same list."""
        return frozenset((*self._engine.config.adapters, *self._engine.config.registered))

    async def change(self, load: Sequence[Resident], unload: Sequence[str]) -> Changed:
        """See `Plug.change`. Nobody waits for an unloading alone: it is done when the engine has nothing to do."""
        if not load and not self._engine.idle:
            return Changed()
        files: dict[str, str] = {}
        failed: dict[str, str] = {}
        for item in load:
            try:
                folder = self._vault / item.folder
                file = await asyncio.to_thread(gguf_adapter, folder, self._weights, revision=item.revision)
                files[item.engine_name] = str(file)
            except MacaronError as error:
                failed[item.engine_name] = error.message
        kept = tuple(name for name in self._engine.config.registered if name not in unload)
        if not files and len(kept) == len(self._engine.config.registered):
            return Changed(failed)
        try:
            return Changed(failed, await self._restart(kept, files))
        except MacaronError as error:
            if len(files) <= 1:
                return Changed({**failed, **dict.fromkeys(files, error.message)})
            # Which of them it was shows only when each comes alone.
            first = next(iter(files))
            alone = await self.change([item for item in load if item.engine_name == first], unload)
            later = dict.fromkeys(files.keys() - {first}, f"put off: {error.message}")
            return Changed({**failed, **later, **alone.failed}, alone.pause)

    async def _restart(self, kept: Sequence[str], files: dict[str, str]) -> float:
        async def replace(slots: int) -> None:
            try:
                answer = await ask_control(
                    self._control, "adapters", timeout=RESTART_SECONDS, keep=list(kept), add=files, slots=slots
                )
            except (OSError, ValueError) as error:
                raise EngineError(f"The supervisor did not restart the engine: {error!r}.") from None
            if reason := answer.get("error"):
                raise EngineError(str(reason), code="engine_failed_to_load")

        return await self._engine.relaunch((*kept, *files), replace, DRAIN_SECONDS)
