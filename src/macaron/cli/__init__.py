"""The command line: one file a group of commands."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from macaron.errors import MacaronError


def build_cli() -> typer.Typer:
    """The whole command line."""
    from macaron.cli import (
        adapter,
        chat,
        data,
        evals,
        experience,
        inspect,
        lineage,
        merge,
        models,
        profile,
        runs,
        serve,
        status,
        trace,
        train,
    )

    app = typer.Typer(
        name="macaron",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=(
            "Serve a Mixture-of-LoRA model: one frozen base, many specialists, one of them chosen for every turn.\n\n"
            "Start with `macaron serve`, then talk to it with `macaron chat` or any OpenAI client."
        ),
    )
    app.callback()(_global_options)
    app.command(epilog=serve.EXAMPLES)(serve.serve)
    app.command(epilog=chat.EXAMPLES)(chat.chat)
    app.command(epilog=status.EXAMPLES)(status.status)
    app.command(epilog=trace.EXAMPLES)(trace.trace)
    app.command(epilog=lineage.EXAMPLES)(lineage.lineage)
    app.command(epilog=merge.EXAMPLES)(merge.merge)
    app.command(epilog=inspect.EXAMPLES)(inspect.inspect)
    app.add_typer(models.app)
    app.add_typer(adapter.app)
    app.add_typer(profile.app)
    app.add_typer(data.app)
    app.add_typer(experience.app)
    app.add_typer(train.app)
    app.add_typer(runs.app)
    app.add_typer(evals.build())
    return app


def main() -> None:
    """Run a command; an error of ours is one message on standard error and status 1."""
    try:
        build_cli()(prog_name="macaron")
    except MacaronError as error:
        sys.stderr.write(f"macaron: {error.message}\n")
        sys.exit(1)
    except ModuleNotFoundError as error:
        # A plain install serves; what training and evaluation need besides is imported when they need it.
        if (error.name or "macaron").startswith("macaron"):
            raise
        sys.stderr.write(f"macaron: this needs {error.name}: pip install 'macaron[train,evals]'\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"macaron {version('macaron')}")
        raise typer.Exit


def _global_options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    return
