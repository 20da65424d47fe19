"""`macaron train`: train a specialist."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from macaron.cli import train_router
from macaron.cli.train_run import run
from macaron.errors import ConfigError

app = typer.Typer(
    name="train",
    no_args_is_help=True,
    help="Train a specialist: a LoRA on the profile's frozen base.",
)

app.command(epilog=train_router.EXAMPLES)(train_router.router)

_SFT_EXAMPLES = """Examples:

  macaron train sft --adapter L2 --data data/code --dry-run       see which tokens carry loss

  macaron train sft --adapter L2 --data data/code --out runs/code

  macaron train sft --adapter L4 --identity poet.md --data data/poems   a specialist that the profile does not have

  macaron train sft --resume --out runs/code                      after it was stopped or killed

Ctrl-C saves a checkpoint and stops."""

_DPO_EXAMPLES = """Examples:

  macaron train dpo --adapter L0 --data data/manners --from runs/chat --out runs/manners"""

_PUBLISH_EXAMPLES = """Examples:

  macaron train publish runs/code --to myprofile/adapters/L2"""

HOW_IT_RUNS = ("out", "resume", "config", "dry_run")
"""Options that are no settings of a run."""

Profile = Annotated[str | None, typer.Option(help="A profile's name or path; demi if left out.")]
Adapter = Annotated[
    str | None, typer.Option(help="Label of the specialist, such as L2; any name where all data has a label.")
]
Identity = Annotated[
    Path | None, typer.Option(help="File with the system prompt of a specialist that the profile does not have.")
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
    context: typer.Context, profile: Profile = None, adapter: Adapter = None, identity: Identity = None,
    data: Data = None, out: Out = None, start: From = None, resume: Resume = False, config: ConfigFile = None,
    epochs: Epochs = None, lr: Lr = None, rank: Rank = None, alpha: Alpha = None, batch_tokens: BatchTokens = None,
    max_tokens: MaxTokens = None, max_steps: MaxSteps = None, seed: Seed = None, threads: Threads = None,
    skip_broken: SkipBroken = False, dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Train on conversations, and on routes where the adapter is the entry specialist's."""
    run("sft", config, _overrides(context.params), out, resume, dry_run)


@app.command(epilog=_DPO_EXAMPLES)
def dpo(
    context: typer.Context, profile: Profile = None, adapter: Adapter = None, identity: Identity = None,
    data: Data = None, out: Out = None, start: From = None, resume: Resume = False, config: ConfigFile = None,
    epochs: Epochs = None, lr: Lr = None, rank: Rank = None, alpha: Alpha = None, batch_tokens: BatchTokens = None,
    max_tokens: MaxTokens = None, max_steps: MaxSteps = None, seed: Seed = None, threads: Threads = None,
    skip_broken: SkipBroken = False, dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Train on pairs of answers of which one is better."""
    run("dpo", config, _overrides(context.params), out, resume, dry_run)


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


def _overrides(options: dict[str, Any]) -> dict[str, Any]:
    """Settings by dotted name from the options as typer read them; None where one was not given."""
    sections = {"lr": "optimizer.lr", "rank": "lora.rank", "alpha": "lora.alpha", "batch_tokens": "batch.tokens"}
    settings = {sections.get(name, name): value for name, value in options.items() if name not in HOW_IT_RUNS}
    settings["data"] = settings["data"] or None
    settings["skip_broken"] = settings["skip_broken"] or None
    settings["identity"] = _text(settings["identity"]) if settings["identity"] else None
    return settings


def _text(path: Path) -> str:
    try:
        text = path.expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", param="identity") from None
    if not text:
        raise ConfigError(f"{path} is empty; write the specialist's system prompt into it", param="identity")
    return text
