"""The libraries of training, without what they print, warnings about themselves, and look-ups in a model hub."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def yield_processor() -> None:
    """Have the threads of a computation sleep while they wait for each other, if that can still be decided.

    They spin otherwise: where anything else ran on the same two cores, training took four times as long.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Only what this project says is shown, and nobody is asked whether a newer file is somewhere."""
    from transformers.utils import logging

    offline = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    before = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # Names that one of the libraries still uses and another is about to drop.
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        if offline is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = offline
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
