"""`macaron serve`: bring up the service."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.console import Console

from macaron.cli.paths import data_folder, default_key_file, runtime_folder, state_key_file, store_url
from macaron.cli.progress import progress_bar
from macaron.errors import ConfigError
from macaron.hcp import Loaded, load
from macaron.models import fetch_weights
from macaron.profiles import find_profile
from macaron.registry.cards import registry_from
from macaron.server.guard import is_loopback
from macaron.server.keys import create_key_file, read_keys
from macaron.server.logs import configure_logging
from macaron.server.state_keys import create_state_key_file, read_state_keys
from macaron.server.supervisor import ServeOptions, Supervisor, vault_folder
from macaron.store import is_shared
from macaron.store.postgres import redacted

OPEN_MODE = "MOL_ALLOW_UNAUTHENTICATED"
KEY_FILE = "MOL_API_KEY_FILE"
STATE_KEY_FILE = "MOL_STATE_KEY_FILE"

EXAMPLES = """Examples:

  macaron serve                                  the small model demi

  macaron serve --profile tall --workers 2       in front of a running vLLM

  macaron serve --profile ./mine --port 9000     a profile of your own

Environment: MOL_API_KEY_FILE names a file with lines `name:key[:scope,…]`; without it a key is made at the first
start. MOL_ALLOW_UNAUTHENTICATED=1 serves without keys, on loopback only. MOL_STATE_KEY_FILE names the keys that seal
what stateless clients keep for the service; services behind one address must share it."""


def serve(
    profile: Annotated[str, typer.Option(help="demi, tall, venti, a folder, or a profile.toml.")] = "demi",
    engine: Annotated[str, typer.Option(help="Address of a running engine, instead of the profile's.")] = "",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8200,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that serve; 1 with the embedded engine.")] = 1,
    store: Annotated[str, typer.Option(help="sqlite:///path, postgresql://user@host/database or memory:.")] = "",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
) -> None:
    """Bring up the service: fetch what is missing, start the engine, answer on /v1.

    Stop it with Ctrl-C: running requests are finished first.
    """
    loaded = load(find_profile(profile), env=os.environ)
    options = _options(loaded, host, port, workers, engine, store, log_level, os.environ)
    configure_logging(log_level)
    supervisor = Supervisor(options, on_ready=lambda bound: _greet(options, bound), on_stop=lambda: _part(options))
    asyncio.run(supervisor.run())


def _options(
    loaded: Loaded,
    host: str,
    port: int,
    workers: int,
    engine: str,
    store: str,
    log_level: str,
    environment: Mapping[str, str],
) -> ServeOptions:
    url = store_url(loaded, store)
    _check(loaded, engine, workers, url)
    loaded = _with_address(loaded, engine)
    if log_level not in ("debug", "info", "warning", "error"):
        raise ConfigError(f"--log-level {log_level!r} is not one of debug, info, warning, error.")
    loopback = is_loopback(host)
    return ServeOptions(
        loaded=loaded,
        registry=registry_from(loaded),
        host=host,
        port=port,
        store=url,
        runtime=runtime_folder(),
        data=data_folder(),
        loopback=loopback,
        workers=workers,
        key_file=_key_file(environment, loopback),
        state_key_file=_state_key_file(environment, url),
        weights=_weights(loaded),
        log_level=log_level,
    )


def _check(loaded: Loaded, engine: str, workers: int, store: str) -> None:
    embedded = loaded.contract.engine.kind == "llamacpp"
    if embedded and engine:
        raise ConfigError(
            "--engine is for profiles that use a running engine; this one brings its own. "
            "Write one with `macaron profile new NAME --base http://…`."
        )
    if workers > 1 and embedded:
        raise ConfigError("--workers must be 1 with the embedded engine: its queue has to see every request.")
    if workers > 1 and (loaded.contract.store.chat == "digests" or loaded.contract.mol.summary == "lazy"):
        raise ConfigError(
            '--workers must be 1 with [store] chat = "digests" or [mol] summary = "lazy", which one process remembers.'
        )
    if workers > 1 and store == "memory:":
        raise ConfigError(
            "--workers must be 1 with the store `memory:`, which one process keeps; use sqlite or postgresql."
        )


def _key_file(environment: Mapping[str, str], loopback: bool) -> Path | None:
    if environment.get(OPEN_MODE) == "1":
        if not loopback:
            raise ConfigError(f"{OPEN_MODE}=1 is for loopback only; unset it, or leave --host at 127.0.0.1.")
        return None
    named = environment.get(KEY_FILE)
    path = Path(named).expanduser().absolute() if named else default_key_file()
    if not named and not path.exists():
        try:
            create_key_file(path)
        except OSError as error:
            raise ConfigError(
                f"The key file {path} cannot be made: {error.strerror}; name another one in {KEY_FILE}."
            ) from None
    read_keys(path)
    return path


def _state_key_file(environment: Mapping[str, str], store: str) -> Path | None:
    """None where the state goes with the process anyway, and so may its key."""
    named = environment.get(STATE_KEY_FILE)
    if not named and store == "memory:":
        return None
    path = Path(named).expanduser().absolute() if named else state_key_file()
    if not named and not path.exists():
        try:
            create_state_key_file(path)
        except OSError as error:
            raise ConfigError(
                f"The state key file {path} cannot be made: {error.strerror}; name another one in {STATE_KEY_FILE}."
            ) from None
    read_state_keys(path)
    return path


def _with_address(loaded: Loaded, address: str) -> Loaded:
    """The contract with another engine address, where one is given."""
    if not address:
        return loaded
    engine = replace(loaded.contract.engine, address=address)
    return replace(loaded, contract=replace(loaded.contract, engine=engine))


def _weights(loaded: Loaded) -> Path | None:
    section = loaded.contract.engine.weights
    if loaded.contract.engine.kind != "llamacpp" or section is None:
        return None
    with progress_bar(Console(stderr=True)) as progress:
        return fetch_weights(section, folder=loaded.folder, progress=progress)


def _greet(options: ServeOptions, port: int) -> None:
    mol = options.loaded.contract.mol
    shown = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{shown}:{port}"
    specialists = ", ".join(f"{item.label} {item.name}" for item in options.registry.specialists)
    lines = [f"{mol.served_model} is ready at {address}/v1", f"specialists: {specialists}"]
    untrained = [item.label for item in options.registry.specialists if item.state == "prompt"]
    if options.registry.prompt_only:
        lines.append("They differ by their prompts only: no adapter of this profile has been trained yet.")
    elif untrained:
        lines.append(f"Only a prompt, without an adapter of its own: {', '.join(untrained)}.")
    if is_shared(options.store):
        lines.append(f"store: {redacted(options.store)}, shared with other services")
        lines.append(f"adapters that are registered lie in {vault_folder(options, port)}: all machines must share it")
    key = ""
    if options.key_file is None:
        lines.append(f"No key is asked for ({OPEN_MODE}=1).")
    else:
        lines.append(f"key file: {options.key_file}")
        key = f' -H "Authorization: Bearer {_key_in_shell(options.key_file)}"'
    lines += [
        "",
        "Try:",
        f"curl -s {address}/v1/chat/completions{key} -H 'Content-Type: application/json' "
        f"""-d '{{"model":"{mol.served_model}","messages":[{{"role":"user","content":"Write a haiku about tea"}}]}}'""",
        "",
        "Stop with Ctrl-C.",
    ]
    typer.echo("\n".join(lines))


def _part(options: ServeOptions) -> None:
    seconds = options.loaded.contract.service.drain_timeout
    # Not on standard output: Ctrl-C may have ended the program that reads it.
    typer.echo(f"Stopping. Running requests are finished, for up to {seconds:g} s; once more ends them now.", err=True)


def _key_in_shell(path: Path) -> str:
    """Reads the key where it stands, so that it is neither printed nor kept in the shell's history."""
    quoted = shlex.quote(str(path))
    first = f"$(grep -m 1 '^[^#]*:' {quoted} | cut -d: -f2)"
    return first if ":" in path.read_text(encoding="utf-8") else f"$(cat {quoted})"
