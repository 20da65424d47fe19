"""Checkpoints that are whole or not there, and the trainer's methods that write them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from macaron.errors import ConfigError
from macaron.train.folder import RunFolder

REQUIRED = ("adapter_model.safetensors", "optimizer*", "scheduler.pt", "rng_state*.pth", "trainer_state.json")
"""Without one of these a trainer goes on all the same, from a state that is partly new."""

_FULL = (
    "No space left on device",
    "File too large",
    "Disk quota exceeded",
    "failed writing file",
    "file write failed",
    "unexpected pos",
)


def check_checkpoint(path: Path) -> None:
    """See that a checkpoint has every file.

    Raises:
        ConfigError: it has not.
    """
    missing = [pattern for pattern in REQUIRED if not any(path.glob(pattern))]
    if missing:
        raise ConfigError(
            f"checkpoint {path} has no {', '.join(missing)}, so training cannot go on as if it had not stopped; "
            "remove that folder to resume from the one before",
            param="resume",
            code="checkpoint_incomplete",
        )


def atomic_checkpoints(trainer_class: Any, folder: RunFolder, keep: int) -> Any:
    """A trainer class whose checkpoints appear in the run folder once they are whole; the newest `keep` stay."""
    from transformers import PrinterCallback, Trainer

    part = folder.checkpoints / ".part"

    class CheckpointingTrainer(trainer_class):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.remove_callback(PrinterCallback)

        def _get_output_dir(self, trial: Any) -> str:
            return str(part)

        def _save_checkpoint(self, model: Any, trial: Any) -> None:
            # The trainers of TRL write a model card first, which nobody reads here.
            with whole(part):
                Trainer._save_checkpoint(self, model, trial)
                self.accelerator.wait_for_everyone()
                if self.args.should_save:
                    _settle(part, folder, self.state.global_step, keep)

    return CheckpointingTrainer


@contextmanager
def whole(part: Path) -> Iterator[None]:
    """Remove what was written at `part` if not all of it could be.

    Raises:
        ConfigError: the disk is full.
    """
    try:
        yield
    except Exception as error:
        shutil.rmtree(part, ignore_errors=True)
        if is_full(error):
            raise ConfigError(
                f"the disk of {part.parent} is full; free some space and go on with --resume: what was saved before "
                "is whole",
                param="out",
                code="disk_full",
            ) from None
        raise


def is_full(error: BaseException) -> bool:
    """Whether an error, perhaps of a library that hides its cause, says that nothing more can be written."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    if any(text in str(error) for text in _FULL):
        return True
    cause = error.__cause__ or error.__context__
    return cause is not None and is_full(cause)


def sync_tree(path: Path) -> None:
    """Have the files of a folder on the disk before it is renamed."""
    for file in path.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())


def _settle(part: Path, folder: RunFolder, step: int, keep: int) -> None:
    written, target = part / f"checkpoint-{step}", folder.checkpoint(step)
    sync_tree(written)
    shutil.rmtree(target, ignore_errors=True)
    written.replace(target)
    for old in folder.checkpoint_steps()[:-keep]:
        shutil.rmtree(folder.checkpoint(old))
