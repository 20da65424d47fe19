"""`macaron train`: train a specialist."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from macaron.cli import train_router
from macaron.cli.train_run import run

app = typer.Typer(
    name="train",
    no_args_is_help=True,
    help="Train a specialist: a LoRA on the profile's frozen base.",
)

app.command(epilog=train_router.EXAMPLES)(train_router.router)

_SFT_EXAMPLES = """Examples:

  macaron train sft --adapter L2 --data data/code --dry-run       see which tokens carry loss

  macaron train sft --adapter L2 --data data/code --out runs/code

  macaron train sft --resume --out runs/code                      after it was stopped or killed

Ctrl-C saves a checkpoint and stops."""

_DPO_EXAMPLES = """Examples:

  macaron train dpo --adapter L0 --data data/manners --from runs/chat --out runs/manners"""

_PUBLISH_EXAMPLES = """Examples:

  macaron train publish runs/code --to myprofile/adapters/L2"""

Profile = Annotated[str | None, typer.Option(help="A profile's name or path; demi if left out.")]
Adapter = Annotated[
    str | None, typer.Option(help="Label of the specialist, such as L2; any name where all data has a label.")
]
Data = Annotated[list[str] | None, typer.Option(help="Folder of a data set, or LABEL=FOLDER; may be repeated.")]
Out = Annotated[Path | None, typer.Option(help="The run's folder; runs/<id> if left out.")]
From = Annotated[str | None, typer.Option("--from", help="A run whose adapter is trained on.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or begin it.")]
ConfigFile = Annotated[str | None, typer.Option("--config", help="A recipe: one that ships, or FILE.toml.")]
Epochs = Annotated[float | None, typer.Option(help="How often the rows are seen.")]
Lr = Annotated[float | None, typer.Option(help="Learning rate at its highest.")]
Rank = Annotated[int | None, typer.Option(help="Rank of the adapter.")]
Alpha = Annotated[int | None, typer.Option(help="Scale of the adapter, times its rank.")]
BatchTokens = Annotated[int | None, typer.Option(help="Tokens computed a step.")]
MaxTokens = Annotated[int | None, typer.Option(help="Longer rows are refused.")]
MaxSteps = Annotated[int | None, typer.Option(help="Steps at most.")]
Seed = Annotated[int | None, typer.Option(help="Of everything random.")]
Threads = Annotated[int | None, typer.Option(help="Processor threads; one a core if left out.")]
SkipBroken = Annotated[bool, typer.Option("--skip-broken", help="Go on without rows that cannot be used.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check data, template and masks; train nothing.")]


@app.command(epilog=_SFT_EXAMPLES)
def sft(
    profile: Profile = None, adapter: Adapter = None, data: Data = None, out: Out = None, start: From = None,
    resume: Resume = False, config: ConfigFile = None, epochs: Epochs = None, lr: Lr = None, rank: Rank = None,
    alpha: Alpha = None, batch_tokens: BatchTokens = None, max_tokens: MaxTokens = None, max_steps: MaxSteps = None,
    seed: Seed = None, threads: Threads = None, skip_broken: SkipBroken = False, dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Train on conversations, and on routes where the adapter is the entry specialist's."""
    given = _overrides(
        profile, adapter, data, start, epochs, lr, rank, alpha, batch_tokens, max_tokens, max_steps, seed, threads,
        skip_broken,
    )  # fmt: skip
    run("sft", config, given, out, resume, dry_run)


@app.command(epilog=_DPO_EXAMPLES)
def dpo(
    profile: Profile = None, adapter: Adapter = None, data: Data = None, out: Out = None, start: From = None,
    resume: Resume = False, config: ConfigFile = None, epochs: Epochs = None, lr: Lr = None, rank: Rank = None,
    alpha: Alpha = None, batch_tokens: BatchTokens = None, max_tokens: MaxTokens = None, max_steps: MaxSteps = None,
    seed: Seed = None, threads: Threads = None, skip_broken: SkipBroken = False, dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Train on pairs of answers of which one is better."""
    given = _overrides(
        profile, adapter, data, start, epochs, lr, rank, alpha, batch_tokens, max_tokens, max_steps, seed, threads,
        skip_broken,
    )  # fmt: skip
    run("dpo", config, given, out, resume, dry_run)


@app.command(epilog=_PUBLISH_EXAMPLES)
def publish(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    to: Annotated[Path, typer.Option(help="Folder for the adapter, such as myprofile/adapters/L2.")],
    licence: Annotated[str, typer.Option(help="SPDX name of its licence, for a card beside it.")] = "",
) -> None:
    """Copy a finished run's adapter to where a profile can name it, at half the size."""
    from macaron.train.publish import publish as copy

    record = copy(folder, to, licence)
    assert record.adapter is not None
    typer.echo(f'{to}\n{record.adapter.revision}\nname it in profile.toml: source = "adapters/{to.name}"')


def _overrides(
    profile: str | None, adapter: str | None, data: list[str] | None, start: str | None, epochs: float | None,
    lr: float | None, rank: int | None, alpha: int | None, batch_tokens: int | None, max_tokens: int | None,
    max_steps: int | None, seed: int | None, threads: int | None, skip_broken: bool,
) -> dict[str, Any]:  # fmt: skip
    return {
        "profile": profile,
        "adapter": adapter,
        "data": data or None,
        "start": start,
        "epochs": epochs,
        "optimizer.lr": lr,
        "lora.rank": rank,
        "lora.alpha": alpha,
        "batch.tokens": batch_tokens,
        "max_tokens": max_tokens,
        "max_steps": max_steps,
        "seed": seed,
        "threads": threads,
        "skip_broken": skip_broken or None,
    }
