"""What happens beside the computation of a run: metrics, checkpoints in time, and stopping when asked to."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from macaron.train.config import CheckpointSection
from macaron.train.folder import RunFolder
from macaron.train.progress import Report, Tick


class StopRequest:
    """Whether somebody asked the run to stop, by SIGINT or SIGTERM; the second time the process ends at once."""

    def __init__(self) -> None:
        self.signal = 0

    @property
    def asked(self) -> bool:
        """Whether it was asked."""
        return self.signal != 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the signals; only the main thread can."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._take) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            raise KeyboardInterrupt
        self.signal = number


class Watch:
    """Follows the steps of a run.

    Args:
        tokens: tokens of each step's rows.
        tokens_before, seconds_before: of the processes that worked on the run earlier.
        writes: whether this process writes the metrics.
    """

    def __init__(
        self,
        folder: RunFolder,
        tokens: Sequence[int],
        section: CheckpointSection,
        stop: StopRequest,
        report: Report,
        *,
        tokens_before: int = 0,
        seconds_before: float = 0.0,
        writes: bool = True,
    ) -> None:
        self._folder = folder
        self._step_tokens = tokens
        self._section = section
        self._stop = stop
        self._report = report
        self._writes = writes
        self._before = seconds_before
        self._begun = self._saved = time.monotonic()
        self._here = 0
        self.tokens = tokens_before
        self.loss = float("nan")
        self.step = 0

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return len(self._step_tokens)

    @property
    def seconds(self) -> float:
        """Spent on the run by all processes together."""
        return self._before + time.monotonic() - self._begun

    def begin(self) -> None:
        """The first step begins now."""
        self._begun = self._saved = time.monotonic()

    def step_done(self, step: int) -> bool:
        """A step is done; returns whether a checkpoint is due."""
        self.step = step
        used = self._step_tokens[step - 1]
        self._here += used
        self.tokens += used
        due = self._section.steps > 0 and step % self._section.steps == 0
        due = due or step == self.steps or self._stop.asked
        if due or time.monotonic() - self._saved >= self._section.minutes * 60:
            self._saved = time.monotonic()
            return True
        return False

    def logged(self, logs: dict[str, float]) -> None:
        """The trainer has numbers about the step that is done."""
        if "loss" not in logs:
            return
        self.loss = logs["loss"]
        entry = {"step": self.step, "epoch": logs.get("epoch", 0.0), "loss": self.loss}
        entry |= {"learning_rate": logs.get("learning_rate", 0.0), "grad_norm": logs.get("grad_norm", 0.0)}
        entry |= {"tokens": self.tokens, "seconds": round(self.seconds, 3)}
        if self._writes:
            self._folder.log(entry)
        elapsed = max(time.monotonic() - self._begun, 1e-9)
        self._report(Tick(self.step, self.steps, self.loss, self._here / elapsed))


def watch_callback(watch: Watch, stop: StopRequest) -> Any:
    """The trainer's callback for a watch."""
    from transformers import TrainerCallback

    class Callback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            watch.begin()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            control.should_save = watch.step_done(state.global_step) or control.should_save
            control.should_training_stop = stop.asked or control.should_training_stop
            return control

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            watch.logged(logs or {})

    return Callback()
