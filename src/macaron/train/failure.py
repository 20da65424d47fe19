"""What can go wrong while a run computes."""

from __future__ import annotations

from macaron.errors import MacaronError


class TrainingFailed(MacaronError):
    """The run cannot give a usable adapter."""

    kind = "training_error"
    default_code = "training_failed"
