"""Where things of this user's are kept."""

from __future__ import annotations

from pathlib import Path

import platformdirs

APP = "macaron"


def data_folder() -> Path:
    """Stores."""
    return platformdirs.user_data_path(APP)


def runtime_folder() -> Path:
    """Control sockets of running services."""
    return platformdirs.user_state_path(APP) / "run"


def default_key_file() -> Path:
    """The key file that the first start makes."""
    return platformdirs.user_config_path(APP) / "keys"
