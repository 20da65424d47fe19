"""The life of a training run: prepared, begun or resumed, computed, measured, and its adapter left behind whole."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from macaron.cores import usable_cores
from macaron.errors import ConfigError, MacaronError
from macaron.hcp import Loaded, load
from macaron.models import Progress, silent
from macaron.profiles import find_profile
from macaron.train.adapter import save_adapter
from macaron.train.base import Base, BaseTokenizer, find_base, load_model, load_tokenizer
from macaron.train.checkpoint import check_checkpoint
from macaron.train.config import TrainConfig, build_config, differences
from macaron.train.dpo import dpo_trainer, preference_metrics
from macaron.train.encode import Encoded, Pair
from macaron.train.folder import RunFolder, adapter_in, new_run_id, now
from macaron.train.inputs import Inputs, read_inputs
from macaron.train.plan import plan_pairs, plan_steps
from macaron.train.prepare import Material, encode_inputs
from macaron.train.processes import is_main, process_count
from macaron.train.progress import Report, unseen
from macaron.train.quiet import quiet_libraries, yield_processor
from macaron.train.record import DataUse, RunRecord, Status
from macaron.train.sft import dev_metrics, sft_trainer
from macaron.train.studio import Studio
from macaron.train.watch import StopRequest, Watch, watch_callback

PACKAGES = ("macaron", "torch", "transformers", "peft", "trl", "accelerate")


class Prepared(NamedTuple):
    """A run whose rows are read, encoded and divided into steps; the model is not loaded."""

    config: TrainConfig
    loaded: Loaded
    base: Base
    tokenizer: Any
    inputs: Inputs
    material: Material
    steps: list[list[Encoded]] | list[list[Pair]]


def prepare_run(config: TrainConfig, *, cache_dir: Path | None = None, progress: Progress = silent) -> Prepared:
    """Read and encode everything.

    Args:
        cache_dir: where dequantised bases are kept, the user's cache if None.

    Raises:
        ConfigError: the profile, the data or the template is wrong, or nothing is left to train on.
        Unavailable: the base's weights cannot be fetched now.
    """
    yield_processor()
    loaded = load(find_profile(config.profile))
    inputs = read_inputs(config.data, config.adapter, skip_broken=config.skip_broken)
    base = find_base(loaded, cache_dir=cache_dir, progress=progress)
    tokenizer = load_tokenizer(base)
    newcomers = {config.adapter: config.identity} if config.identity else {}
    studio = Studio(loaded, base, BaseTokenizer(tokenizer), config.route.add, newcomers)
    material = encode_inputs(studio, inputs, config)
    steps: Any = (
        plan_steps(studio, material.train, config) if config.kind == "sft" else plan_pairs(material.train, config)
    )
    if not steps:
        raise ConfigError("these settings leave no step to train; look at epochs and [mix]", param="epochs")
    return Prepared(config, loaded, base, tokenizer, inputs, material, steps)


def resumed_config(folder: RunFolder, overrides: dict[str, Any]) -> TrainConfig:
    """The settings of a run that is gone on with.

    Raises:
        ConfigError: an override would change its result.
    """
    table = folder.read_json("config.json")
    stored, given = build_config(table, {}), build_config(table, overrides)
    if changed := differences(stored, given):
        raise ConfigError(
            f"{folder.path} was begun with other settings for {', '.join(changed)}; leave them out to go on with it, "
            "or begin a new run with --from",
            param=changed[0],
            code="resume_differs",
        )
    return given


def train(
    prepared: Prepared, folder: RunFolder, *, resume: bool = False, run_id: str = "", report: Report = unseen
) -> RunRecord:
    """Train, and leave the adapter, metrics and record in the run folder.

    A run that is asked to stop by SIGINT or SIGTERM saves a checkpoint and ends with status `stopped`.

    Raises:
        ConfigError: the folder is in use or holds another run, or the disk is full.
        TrainingFailed: the loss is not a number; the record says so and there is no adapter.
    """
    with folder.locked() if is_main() else nullcontext():
        record, step = _begin(prepared, folder, resume, run_id)
        if record.status == "finished":
            return record
        run = _Run(prepared, folder, record, step, report)
        with run.recorded(), quiet_libraries():
            return run.go()


def _begin(prepared: Prepared, folder: RunFolder, resume: bool, run_id: str) -> tuple[RunRecord, int]:
    """The record of the run, and the step after which it goes on."""
    if not is_main():
        record = folder.read_record() if resume and folder.exists else _new_record(prepared, run_id)
        return record, max(folder.checkpoint_steps(), default=0)
    if not folder.exists:
        record = _new_record(prepared, run_id or new_run_id(prepared.config.adapter))
        folder.write_json("config.json", prepared.config)
        folder.write_json("data.json", {"data": prepared.inputs.folders, "manifests": prepared.inputs.manifests})
        folder.write_record(record)
        return record, 0
    record = folder.read_record()
    if record.status == "finished":
        return record, record.steps
    if not resume:
        raise ConfigError(
            f"{folder.path} holds run {record.id}, which is {record.status}; go on with --resume, or name another "
            "--out",
            param="out",
            code="run_exists",
        )
    _check_same(prepared, folder, record)
    return record, max(folder.checkpoint_steps(), default=0)


def _check_same(prepared: Prepared, folder: RunFolder, record: RunRecord) -> None:
    if changed := differences(build_config(folder.read_json("config.json"), {}), prepared.config):
        raise ConfigError(f"{folder.path} was begun with other settings for {', '.join(changed)}", param=changed[0])
    if folder.read_json("data.json")["data"] != prepared.inputs.folders:
        raise ConfigError(
            f"the data of {folder.path} has changed since it was begun; build it again as it was, or begin a new run",
            param="data",
            code="data_changed",
        )
    if record.base_fingerprint != prepared.base.fingerprint:
        raise ConfigError(f"{folder.path} was begun on another base, {record.base_fingerprint}", param="profile")


def _new_record(prepared: Prepared, run_id: str) -> RunRecord:
    config, base = prepared.config, prepared.base
    used = prepared.material.used
    return RunRecord(
        id=run_id,
        kind=config.kind,
        status="running",
        profile=prepared.loaded.contract.mol.served_model,
        label=config.adapter,
        base=base.name,
        base_fingerprint=base.fingerprint,
        created=now(),
        seed=config.seed,
        data=tuple(DataUse(path, sha, *used.get(path, (0, 0))) for path, sha in prepared.inputs.folders.items()),
        parent=_parent(config, base).id if config.start else "",
        versions={name: version(name) for name in PACKAGES},
        machine=f"{_processor()}, {threads_of(config)} threads",
        config=msgspec.json.decode(msgspec.json.encode(config)),
    )


def _parent(config: TrainConfig, base: Base) -> RunRecord:
    """The record of the run that is trained on.

    Raises:
        ConfigError: it has no adapter, or one for another base.
    """
    folder = RunFolder(Path(config.start).expanduser())
    record = folder.read_record()
    if not adapter_in(folder.path).is_dir():
        raise ConfigError(f"run {folder.path} is {record.status} and has no adapter to go on from", param="from")
    if record.base_fingerprint != base.fingerprint:
        raise ConfigError(f"run {folder.path} was trained on another base, {record.base_fingerprint}", param="from")
    return record


class _Run:
    def __init__(self, prepared: Prepared, folder: RunFolder, record: RunRecord, step: int, report: Report) -> None:
        self._prepared = prepared
        self._folder = folder
        self._record = record
        self._step = step
        self._stop = StopRequest()
        last = folder.cut_metrics(step) if is_main() else {}
        batches, together = [_tokens(batch) for batch in prepared.steps], process_count()
        self._watch = Watch(
            folder,
            [sum(batches[at : at + together]) for at in range(0, len(batches), together)],
            prepared.config.checkpoint,
            self._stop,
            report,
            tokens_before=int(last.get("tokens", 0)),
            seconds_before=float(last.get("seconds", 0.0)),
            writes=is_main(),
        )

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Say in the record how the run ended, also where it failed."""
        self._write("running", reason="")
        try:
            yield
        except KeyboardInterrupt:
            self._write("stopped", reason="interrupted twice, without a checkpoint")
            raise
        except Exception as error:
            reason = error.message if isinstance(error, MacaronError) else f"{type(error).__name__}: {error}"
            # A full disk may have no room for the reason either; the error itself matters more.
            with suppress(MacaronError):
                self._write("failed", reason=reason)
            raise

    def go(self) -> RunRecord:
        """Compute."""
        import torch
        from transformers import set_seed

        config = self._prepared.config
        torch.set_num_threads(threads_of(config))
        set_seed(config.seed)
        trainer = self._trainer()
        checkpoint = None
        if self._step:
            checkpoint = self._folder.checkpoint(self._step)
            check_checkpoint(checkpoint)
        with self._stop.listening():
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        if self._stop.asked and self._watch.step < self._watch.steps:
            return self._write("stopped", reason=f"signal {self._stop.signal} after step {self._watch.step}")
        model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
        return self._finish(trainer, model)

    def _finish(self, trainer: Any, model: Any) -> RunRecord:
        metrics = {} if self._watch.loss != self._watch.loss else {"loss": self._watch.loss}
        dev = self._prepared.material.dev
        if dev.pairs:
            metrics |= preference_metrics(trainer)
        else:
            groups = {"sft": dev.sft, "route": [encoded for _, encoded in dev.route]}
            present = {kind: rows for kind, rows in groups.items() if rows}
            metrics |= dev_metrics(model, present, self._prepared.config)
        metrics["rows_left_out"] = float(len(self._prepared.material.bad))
        record = replace(self._now("finished"), metrics=metrics, finished=now())
        if is_main():
            record = save_adapter(model, self._folder, record)
            self._folder.write_record(record)
        return record

    def _trainer(self) -> Any:
        from peft import LoraConfig, PeftModel, get_peft_model

        prepared, config = self._prepared, self._prepared.config
        lora = config.lora
        peft_config = LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=list(lora.targets),
            task_type="CAUSAL_LM",
        )
        model = load_model(prepared.base, config.precision)
        callbacks = [watch_callback(self._watch, self._stop)]
        if config.start:
            source = adapter_in(Path(config.start).expanduser())
            model = PeftModel.from_pretrained(model, str(source), is_trainable=True)
            # An adapter names its base for people; PEFT wants to look into it whenever it saves.
            model.peft_config["default"].base_model_name_or_path = str(prepared.base.folder)
        steps: Any = prepared.steps
        if config.kind == "dpo":
            dev = _dev_batches(prepared.material.dev.pairs, config)
            fresh = None if config.start else peft_config
            return dpo_trainer(model, fresh, prepared.tokenizer, steps, dev, config, self._folder, callbacks)
        if not config.start:
            model = get_peft_model(model, peft_config)
        return sft_trainer(model, prepared.tokenizer, steps, config, self._folder, callbacks)

    def _now(self, status: Status, reason: str = "") -> RunRecord:
        watch = self._watch
        return replace(
            self._record,
            status=status,
            reason=reason,
            seconds=round(watch.seconds, 3),
            tokens=watch.tokens,
            steps=max(watch.step, self._step),
        )

    def _write(self, status: Status, reason: str = "") -> RunRecord:
        record = self._now(status, reason)
        if is_main():
            self._folder.write_record(record)
        return record


def _dev_batches(pairs: Sequence[Pair], config: TrainConfig) -> list[list[Pair]]:
    return [list(pairs[start : start + config.batch.rows]) for start in range(0, len(pairs), config.batch.rows)]


def _tokens(batch: Sequence[Encoded] | Sequence[Pair]) -> int:
    """Tokens of a batch's rows, each counted whole, as plain training would compute them."""
    total = 0
    for row in batch:
        match row:
            case Encoded(ids):
                total += len(ids)
            case Pair(prompt, chosen, rejected):
                total += 2 * len(prompt) + len(chosen) + len(rejected)
    return total


def threads_of(config: TrainConfig) -> int:
    """Processor threads that a run computes with."""
    return config.threads or usable_cores()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
