"""Where things of this user's are kept."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from macaron.hcp import Loaded

APP = "macaron"


def data_folder() -> Path:
    """Stores."""
    return platformdirs.user_data_path(APP)


def store_url(loaded: Loaded, override: str) -> str:
    """The URL of a service's store: as given, as its profile says, or the default file of the profile."""
    url = override or loaded.contract.store.url
    return f"sqlite://{data_folder() / f'{loaded.contract.mol.served_model}.db'}" if url == "sqlite://" else url


def state_key_file() -> Path:
    """The file of state keys that the first start makes beside the stores."""
    return data_folder() / "state.keys"


def runtime_folder() -> Path:
    """Control sockets of running services."""
    return platformdirs.user_state_path(APP) / "run"


def default_key_file() -> Path:
    """The key file that the first start makes."""
    return platformdirs.user_config_path(APP) / "keys"
