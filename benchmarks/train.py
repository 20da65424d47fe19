"""`python -m benchmarks.train`: tokens a second of training, beside plain TRL on the same rows in the same run.

Plain is TRL's `SFTTrainer` with its own collator, as many rows a step, bf16 and checkpointing off, on the same base,
adapter shape and rows, encoded beforehand. All are counted alike: all tokens of the rows, as plain training computes
them. The candidates take turns, and the order turns round; ratios are taken within a round. Ours runs a second time
with the frozen base in bfloat16, as `demi` is trained; the targets are about float32 on both sides.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from benchmarks import report
from benchmarks.report import Grid, Target, number
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.train.base import Base, BaseTokenizer, find_base, load_model, load_tokenizer
from macaron.train.batches import Limits, batches_of
from macaron.train.config import Precision, TrainConfig, build_config
from macaron.train.data.rows import RouteRow, SftRow
from macaron.train.encode import Encoded
from macaron.train.folder import RunFolder
from macaron.train.quiet import quiet_libraries, yield_processor
from macaron.train.sft import sft_trainer
from macaron.train.studio import Studio

ROWS_A_STEP = 8
WORDS = (
    *("the", "of", "and", "in", "is", "that", "he", "was", "for", "on", "are", "with", "his", "they", "at", "one"),
    *("have", "from", "had", "by", "but", "some", "there", "we", "can", "out", "other", "were", "all", "your", "when"),
    *("up", "use", "word", "how", "said", "each", "she", "which", "their", "time", "will", "way", "about", "many"),
    *("then", "them", "write", "would", "like", "these", "her", "long", "make", "thing", "see", "him", "two", "has"),
)


class Round(msgspec.Struct, frozen=True):
    """Tokens a second of each candidate in one round; `half` is ours in bfloat16."""

    ours: float
    half: float
    plain: float


def sft_rows(count: int, choice: random.Random) -> list[SftRow]:
    """Requests of 20 to 120 words with answers of 30 to 150."""
    return [
        SftRow(f"s{at}", "bench", messages=(_said("user", 20, 120, choice), _said("assistant", 30, 150, choice)))
        for at in range(count)
    ]


def route_rows(count: int, choice: random.Random) -> list[RouteRow]:
    """Requests of 5 to 100 words."""
    return [
        RouteRow(f"r{at}", "bench", messages=(_said("user", 5, 100, choice),), label=f"L{at % 4}")
        for at in range(count)
    ]


def _said(role: str, least: int, most: int, choice: random.Random) -> dict[str, Any]:
    return {"role": role, "content": " ".join(choice.choices(WORDS, k=choice.randint(least, most)))}


class Bench:
    """Trains a few steps in both ways."""

    def __init__(self, base: Base, folder: Path) -> None:
        self._base = base
        self._folder = folder
        self._tokenizer = load_tokenizer(base)
        self.config = build_config(
            {"kind": "sft", "profile": "demi", "adapter": "L0", "data": ["none"]}, {"batch.rows": ROWS_A_STEP}
        )

    def ours(self, rows: Sequence[Encoded], precision: Precision = "float32") -> float:
        """Tokens a second through the project's trainer."""
        limits = Limits(self.config.batch.tokens, ROWS_A_STEP, len(rows))
        steps = batches_of(rows, limits)

        def build(callback: Any) -> Any:
            config = replace(self.config, precision=precision)
            return sft_trainer(
                self._model(precision), self._tokenizer, steps, config, RunFolder(self._folder), [callback]
            )

        return self._speed(build, rows)

    def plain(self, rows: Sequence[Encoded]) -> float:
        """Tokens a second through TRL's trainer as it is."""

        def build(callback: Any) -> Any:
            from datasets import Dataset
            from trl import SFTTrainer

            columns = [{"input_ids": row.ids, "labels": _labels(row)} for row in rows]
            return SFTTrainer(
                model=self._model(),
                args=_plain_arguments(self.config, self._folder),
                train_dataset=Dataset.from_list(columns),
                processing_class=self._tokenizer,
                callbacks=[callback],
            )

        return self._speed(build, rows)

    def _model(self, precision: Precision = "float32") -> Any:
        from peft import LoraConfig, get_peft_model

        lora = self.config.lora
        targets = list(lora.targets)
        shape = LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules=targets, task_type="CAUSAL_LM")
        return get_peft_model(load_model(self._base, precision), shape)

    def _speed(self, build: Callable[[Any], Any], rows: Sequence[Encoded]) -> float:
        from transformers import PrinterCallback, TrainerCallback

        times: list[float] = []

        class Clock(TrainerCallback):  # type: ignore[misc]
            def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
                times.append(time.perf_counter())

            def on_train_end(self, *args: Any, **kwargs: Any) -> None:
                times.append(time.perf_counter())

        trainer = build(Clock())
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return sum(len(row.ids) for row in rows) / (times[1] - times[0])


def _labels(row: Encoded) -> list[int]:
    learned = set(row.learned)
    return [token if place in learned else -100 for place, token in enumerate(row.ids)]


def _plain_arguments(config: TrainConfig, folder: Path) -> Any:
    from trl import SFTConfig

    return SFTConfig(
        output_dir=str(folder / "plain"),
        per_device_train_batch_size=ROWS_A_STEP,
        num_train_epochs=1,
        learning_rate=config.optimizer.lr,
        bf16=False,
        gradient_checkpointing=False,
        max_length=None,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        log_level="error",
    )


def measure(bench: Bench, batches: Sequence[Sequence[Encoded]]) -> list[Round]:
    """One round for each set of rows."""
    rounds = []
    for at, rows in enumerate(batches):
        candidates = {
            "plain": lambda rows=rows: bench.plain(rows),
            "ours": lambda rows=rows: bench.ours(rows),
            "half": lambda rows=rows: bench.ours(rows, "bfloat16"),
        }
        order = list(candidates)
        speeds = {name: candidates[name]() for name in (reversed(order) if at % 2 else order)}
        rounds.append(Round(**speeds))
    return rounds


def row_of(name: str, rounds: Sequence[Round]) -> tuple[str, ...]:
    """A line of the table."""
    return (
        name,
        number(statistics.median(one.plain for one in rounds)),
        number(statistics.median(one.ours for one in rounds)),
        _over_rounds([one.ours / one.plain for one in rounds]),
        number(statistics.median(one.half for one in rounds)),
        _over_rounds([one.half / one.ours for one in rounds]),
    )


def _over_rounds(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def main() -> None:
    """Run, print, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2, help="of one trainer in one round")
    options = parser.parse_args()
    began = time.monotonic()
    yield_processor()
    loaded = load(find_profile("demi"))
    base = find_base(loaded)
    studio = Studio(loaded, base, BaseTokenizer(load_tokenizer(base)))
    choice = random.Random(1)
    count = ROWS_A_STEP * options.steps
    sets = {
        "sft": [[studio.sft(row, "L0") for row in sft_rows(count, choice)] for _ in range(options.rounds)],
        "route": [[studio.route(row) for row in route_rows(count, choice)] for _ in range(options.rounds)],
    }
    with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder, quiet_libraries():
        bench = Bench(base, Path(folder))
        for rows in sets.values():
            measure(bench, [rows[0][:ROWS_A_STEP]])
        figures = {kind: measure(bench, rows) for kind, rows in sets.items()}
    targets = [
        Target(f"{kind} rows, of plain TRL's tokens/s", _ratio(figures[kind]), limit, "×", True)
        for kind, limit in (("sft", 1.0), ("route", 1.5))
    ]
    columns = (
        *("rows", "plain TRL, tokens/s", "macaron train, tokens/s", "over plain TRL, over rounds"),
        *("the same in bfloat16, tokens/s", "over float32, over rounds"),
    )
    speeds = Grid("Speed of training", columns, [row_of(kind, rounds) for kind, rounds in figures.items()])
    grids = [speeds, report.targets_grid(targets)]
    report.show(grids)
    written = report.write("train", {"options": vars(options), "figures": figures, "targets": targets}, grids)
    print(f"{report.description()}; {time.monotonic() - began:.0f} s; written to {written}")


def _ratio(rounds: Sequence[Round]) -> float:
    return statistics.median(one.ours / one.plain for one in rounds)


if __name__ == "__main__":
    main()
