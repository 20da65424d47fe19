"""Supervised fine-tuning of conversations and routes with TRL's `SFTTrainer`, on steps that are planned before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from macaron.train.batches import Limits, batches_of
from macaron.train.checkpoint import atomic_checkpoints
from macaron.train.config import TrainConfig
from macaron.train.encode import Encoded
from macaron.train.failure import TrainingFailed
from macaron.train.folder import RunFolder
from macaron.train.loss import collate, compute
from macaron.train.processes import process_count
from macaron.train.speed import speed_up


def sft_trainer(
    model: Any,
    tokenizer: Any,
    steps: Sequence[Sequence[Encoded]],
    config: TrainConfig,
    folder: RunFolder,
    callbacks: Sequence[Any],
) -> Any:
    """The trainer of a run; `model` is a PEFT model."""
    from trl import SFTConfig, SFTTrainer

    if config.precision == "bfloat16" and model.device.type == "cpu":
        speed_up(model)

    class StepTrainer(SFTTrainer):
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            result = compute(model, inputs)
            refuse_infinite(float(result.loss.detach()), self.state.global_step + 1)
            return (result.loss, {"logits": result.logits}) if return_outputs else result.loss

    arguments = SFTConfig(**common_arguments(config, folder, len(steps)), **_PREPARED)
    trainer_class = atomic_checkpoints(StepTrainer, folder, config.checkpoint.keep)
    return trainer_class(
        model=model,
        args=arguments,
        train_dataset=numbered(range(len(steps))),
        data_collator=lambda numbers: collate(steps[numbers[0]["number"]]),
        processing_class=tokenizer,
        callbacks=list(callbacks),
    )


_PREPARED: Mapping[str, Any] = {"max_length": None, "dataset_kwargs": {"skip_prepare_dataset": True}}


def common_arguments(config: TrainConfig, folder: RunFolder, steps: int) -> dict[str, Any]:
    """Arguments of every trainer here: one planned batch a step, in order, everything logged."""
    optimizer = config.optimizer
    return {
        "output_dir": str(folder.checkpoints),
        "per_device_train_batch_size": 1,
        "per_device_eval_batch_size": 1,
        "gradient_accumulation_steps": 1,
        "num_train_epochs": 1,
        "train_sampling_strategy": "sequential",
        "remove_unused_columns": False,
        "learning_rate": optimizer.lr,
        "lr_scheduler_type": optimizer.schedule,
        "warmup_steps": math.ceil(optimizer.warmup * steps / process_count()),
        "weight_decay": optimizer.weight_decay,
        "max_grad_norm": optimizer.clip,
        "seed": config.seed,
        "bf16": False,
        "gradient_checkpointing": False,
        "ddp_find_unused_parameters": False,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "log_level": "error",
    }


def numbered(numbers: Iterable[int]) -> Any:
    """A data set of batch numbers: the trainers skip and share out numbers, and the collator knows the rows."""
    from datasets import Dataset

    return Dataset.from_dict({"number": list(numbers)})


def refuse_infinite(loss: float, step: int) -> None:
    """Stop at a loss that is not a number.

    Raises:
        TrainingFailed: it is not finite.
    """
    if not math.isfinite(loss):
        raise TrainingFailed(
            f"the loss of step {step} is {loss}; nothing was saved of it. Lower --lr, or look at that step's rows",
            code="loss_not_finite",
        )


def dev_metrics(model: Any, groups: Mapping[str, Sequence[Encoded]], config: TrainConfig) -> dict[str, float]:
    """The loss on held-out rows, over all tokens with loss and for each kind; the share of routes that are right.

    A route is right where, among the tokens that decide for a label, the right one is the most likely.
    """
    import torch

    totals: dict[str, tuple[float, int]] = {}
    right = 0
    model.eval()
    device = next(model.parameters()).device
    with torch.inference_mode():
        for kind, rows in groups.items():
            limits = Limits(config.batch.tokens, config.batch.rows, max(len(rows), 1))
            for batch in batches_of(rows, limits):
                result = compute(model, {name: value.to(device) for name, value in collate(batch).items()})
                count = sum(len(row.learned) for row in batch)
                loss, tokens = totals.get(kind, (0.0, 0))
                totals[kind] = (loss + float(result.loss) * count, tokens + count)
                right += _right(batch, result.logits)
    metrics = {f"dev_loss_{kind}": loss / tokens for kind, (loss, tokens) in totals.items()}
    if totals:
        metrics["dev_loss"] = sum(loss for loss, _ in totals.values()) / sum(tokens for _, tokens in totals.values())
    if groups.get("route"):
        metrics["dev_accuracy"] = right / len(groups["route"])
    return metrics


def _right(batch: Iterable[Encoded], logits: Any) -> int:
    """How many rows of a batch have the right label; `logits` are of all tokens with loss, row after row."""
    right, at = 0, 0
    for row in batch:
        if row.choices:
            scores = logits[at + row.decides, list(row.choices)]
            right += row.choices[int(scores.argmax())] == row.ids[row.learned[row.decides]]
        at += len(row.learned)
    return right
