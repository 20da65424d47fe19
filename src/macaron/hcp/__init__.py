"""HCP, the harness contract: one TOML document that says what a service runs, and that its digest names.

    from macaron.hcp import load

    loaded = load("profile.toml")
    loaded.contract.mol.default          # 'L2'
    loaded.text("mol.route.prompt_path") # the routing instruction
    loaded.digest                        # 'hcp1:…'

A document is never searched for: the caller names it. Reading is strict, as everything Macaron ships is: an unknown key
is an error with a suggestion, and a section that HCP defines but this version does not run is refused by name.
"""

from __future__ import annotations

from macaron.hcp.checks import is_adapter
from macaron.hcp.digest import canonical, digest_of
from macaron.hcp.load import Loaded, load
from macaron.hcp.schema import (
    AdapterEntry,
    ConsentEntry,
    Contract,
    EngineSection,
    ExperienceSection,
    HopTimeouts,
    LlamaCppSection,
    MolSection,
    RegistrySection,
    RouteSection,
    ServiceSection,
    StoreSection,
    WeightsSection,
)

__all__ = [
    "AdapterEntry",
    "ConsentEntry",
    "Contract",
    "EngineSection",
    "ExperienceSection",
    "HopTimeouts",
    "LlamaCppSection",
    "Loaded",
    "MolSection",
    "RegistrySection",
    "RouteSection",
    "ServiceSection",
    "StoreSection",
    "WeightsSection",
    "canonical",
    "digest_of",
    "is_adapter",
    "load",
]
