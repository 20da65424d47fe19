"""The vault: a place of the service's own where registered adapters lie, by content, whole or not at all."""

from __future__ import annotations

from macaron.registry.vault.errors import (
    InUse,
    NotStored,
    Oversize,
    Unsuitable,
    VaultError,
    VaultFailure,
    VaultFull,
)
from macaron.registry.vault.layout import Owner, Stored, Swept, Usage, VaultLimits
from macaron.registry.vault.stage import Staged
from macaron.registry.vault.steps import STEPS, Step
from macaron.registry.vault.vault import Vault

__all__ = [
    "STEPS",
    "InUse",
    "NotStored",
    "Oversize",
    "Owner",
    "Staged",
    "Step",
    "Stored",
    "Swept",
    "Unsuitable",
    "Usage",
    "Vault",
    "VaultError",
    "VaultFailure",
    "VaultFull",
    "VaultLimits",
]
