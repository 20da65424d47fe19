"""Preference training with TRL's `DPOTrainer` (arXiv:2305.18290), on rows that are already encoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from macaron.train.checkpoint import atomic_checkpoints
from macaron.train.config import TrainConfig
from macaron.train.encode import Pair
from macaron.train.folder import RunFolder
from macaron.train.sft import common_arguments, numbered, refuse_infinite


def dpo_trainer(
    model: Any,
    peft_config: Any,
    tokenizer: Any,
    steps: Sequence[Sequence[Pair]],
    dev: Sequence[Sequence[Pair]],
    config: TrainConfig,
    folder: RunFolder,
    callbacks: Sequence[Any],
) -> Any:
    """The trainer of a preference run.

    Args:
        model: the base, or a PEFT model, which is then also what it is held to.
        peft_config: of the new adapter on a base; None with a PEFT model.
        dev: held-out batches, numbered after the steps.
    """
    from trl import DPOConfig, DPOTrainer
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    class StepTrainer(DPOTrainer):
        def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
            return dataset

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            found = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            loss = found[0] if return_outputs else found
            refuse_infinite(float(loss.detach()), self.state.global_step + 1)
            return found

    batches = [*steps, *dev]
    pad = DataCollatorForPreference(pad_token_id=tokenizer.pad_token_id)
    arguments = DPOConfig(**common_arguments(config, folder, len(steps)), beta=config.dpo.beta, max_length=None)
    trainer_class = atomic_checkpoints(StepTrainer, folder, config.checkpoint.keep)
    return trainer_class(
        model=model,
        args=arguments,
        train_dataset=numbered(range(len(steps))),
        eval_dataset=numbered(range(len(steps), len(batches))) if dev else None,
        data_collator=lambda numbers: pad([_columns(pair) for pair in batches[numbers[0]["number"]]]),
        processing_class=tokenizer,
        peft_config=peft_config,
        callbacks=list(callbacks),
    )


def preference_metrics(trainer: Any) -> dict[str, float]:
    """Loss on held-out pairs, and the share of which the better answer is preferred."""
    found = trainer.evaluate()
    return {"dev_loss": float(found["eval_loss"]), "dev_accuracy": float(found["eval_rewards/accuracies"])}


def _columns(pair: Pair) -> dict[str, list[int]]:
    return {"prompt_ids": pair.prompt, "chosen_ids": pair.chosen, "rejected_ids": pair.rejected}
