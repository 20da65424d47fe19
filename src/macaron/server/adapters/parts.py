"""What a worker needs for adapters that come while it serves, put together."""

from __future__ import annotations

import logging
from pathlib import Path, PurePath

from macaron.engine.base import Pluggable
from macaron.engine.llamacpp.engine import LlamaCppEngine
from macaron.mol.probe import EngineProbe
from macaron.registry.desired import Desired, withdraw
from macaron.registry.vault import Vault
from macaron.server.adapters.calls import CallsPlug
from macaron.server.adapters.document import Document
from macaron.server.adapters.embedded import EmbeddedPlug
from macaron.server.adapters.follow import Follower
from macaron.server.adapters.peers import Peers
from macaron.server.adapters.reconcile import Plug, Reconciler
from macaron.server.adapters.sweep import Sweeper
from macaron.server.engines import Embedded
from macaron.server.service import Service

log = logging.getLogger("macaron.adapters")

PROBE_TENANT = "macaron-probe"
"""No key's name has two parts like this, so the probe's prompts lie in nobody's cache."""


class Adapters:
    """Everything about adapters in one worker.

    Attributes:
        plug: None where the engine takes none.
    """

    def __init__(
        self, service: Service, document: Document, vault: Vault, plug: Plug | None, peers: Peers, worker: int
    ) -> None:
        self.service = service
        self.document = document
        self.vault = vault
        self.plug = plug
        self.follower = Follower(service, document, peers, worker, self._reconciler())
        service.doubts.broken = self._broken

    def _broken(self, adapter: str, reason: str) -> None:
        self.service.background.start(self._withdraw(adapter, reason), f"withdrawal of {adapter}")

    async def _withdraw(self, adapter: str, reason: str) -> None:
        log.error("adapter %s is taken out of service: %s", adapter, reason)

        def edit(desired: Desired) -> Desired:
            for entry in desired.entries:
                for item in entry.revisions:
                    if entry.engine_name(item) == adapter:
                        desired = withdraw(desired, entry.key, item.revision, reason)
            return desired

        await self.document.change(edit)
        self.follower.nudge()

    def _reconciler(self) -> Reconciler | None:
        if self.plug is None:
            return None
        probe = EngineProbe(self.service.engine, tenant=PROBE_TENANT)
        limit = self.service.contract.engine.adapter_limit
        return Reconciler(self.plug, probe, self.document, self.service.profile, Sweeper(self.vault), limit)


def plug_for(service: Service, vault: Path, control: Path, embedded: Embedded | None) -> Plug | None:
    """How adapters get into the engine of a service.

    Args:
        vault: folder of all adapters.
        control: the supervisor's socket.
        embedded: of the embedded engine.
    """
    engine, section = service.engine, service.contract.engine
    if isinstance(engine, LlamaCppEngine) and embedded is not None:
        return EmbeddedPlug(engine, control, vault, Path(embedded.weights))
    if section.kind in ("vllm", "sglang"):
        return _calls(engine, section.address, PurePath(section.adapter_root or vault))
    return None


def _calls(engine: object, address: str, root: PurePath) -> Plug | None:
    return CallsPlug(engine, address, root) if isinstance(engine, Pluggable) else None
