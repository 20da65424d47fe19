"""A specialist merged into its base, as a profile of its own: one specialist, no adapters, nothing to route."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.hcp import (
    AdapterEntry,
    Contract,
    EngineSection,
    LlamaCppSection,
    Loaded,
    MolSection,
    StoreSection,
    WeightsSection,
    load,
)
from macaron.models import read_gguf
from macaron.models.gguf_table import read_whole_table
from macaron.models.merge import GgufType, Merged, MergeRecord, merge_gguf, merge_safetensors, write_record
from macaron.models.merge.output import Advance, appearing, unwatched
from macaron.models.merge.record import RECORD_FILE, UNKNOWN, Part
from macaron.profiles import DOCUMENT
from macaron.profiles.new import MAX_SLOT_CONTEXT, VLLM_ADDRESS
from macaron.profiles.provenance import card_licence, read_run
from macaron.profiles.toml import quoted, toml_text
from macaron.registry.revision import adapter_revision

_ODD = re.compile(r"^\.|[^A-Za-z0-9._-]")
"""What a served model's name may have and a file's should not."""

_TEMPLATE = "chat_template.jinja"


class Specialist(NamedTuple):
    """Whose adapter is merged: its entry in the contract, and the adapter's folder in PEFT's format."""

    entry: AdapterEntry
    folder: Path


class BaseWeights(NamedTuple):
    """What it is merged into.

    Attributes:
        path: a GGUF file, or a folder of safetensors.
        fingerprint: `sha256:<hex>` of the base as the contract knows it, empty where it does not: then it is computed
            from the files.
        licence: empty where only the files can say it.
    """

    path: Path
    fingerprint: str = ""
    licence: str = ""


def find_specialist(loaded: Loaded, adapter: str, label: str = "") -> Specialist:
    """The specialist that a person means.

    Args:
        adapter: a label of the contract, or the path of an adapter: a text with a separator or a leading dot or tilde.
        label: with a path, whose card and prompt it gets; if empty, that of the run which trained it.

    Raises:
        ConfigError: there is none, it has no adapter, or nothing says which specialist the path is.
    """
    entries = {entry.label: entry for entry in loaded.contract.mol.adapters}
    known = ", ".join(entries)
    if "/" not in adapter and not adapter.startswith((".", "~")):
        if label:
            raise ConfigError("--label is for an adapter that is given by its path; leave it out", param="label")
        if (entry := entries.get(adapter)) is None:
            hint = f"for the folder of that name write ./{adapter}" if Path(adapter).is_dir() else f"there are {known}"
            raise ConfigError(f"the profile has no specialist {adapter!r}; {hint}", param="adapter")
        if not entry.source:
            remedy = "name one with a source, or the path of an adapter"
            raise ConfigError(
                f"{adapter} has no adapter whose bytes are here, so nothing to merge; {remedy}", param="adapter"
            )
        return Specialist(entry, loaded.file(entry.source))
    folder = Path(adapter).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; name one in PEFT's format", param="adapter")
    named = label or read_run(folder).label
    if (entry := entries.get(named)) is None:
        reason = f"has no specialist {named!r}" if named else "does not say which specialist this adapter is"
        raise ConfigError(f"the profile {reason}; give --label with one of {known}", param="label")
    return Specialist(entry, folder)


def merge_profile(
    loaded: Loaded,
    specialist: Specialist,
    base: BaseWeights,
    out: Path,
    dtype: GgufType | None = None,
    *,
    advance: Advance = unwatched,
) -> Loaded:
    """Write the folder `out` with the merged model, a profile that serves it, and the record; load it as proof.

    Args:
        dtype: as for `merge_gguf`; only for a GGUF base.
        advance: is called with the bytes written so far and in all.

    Raises:
        ConfigError: the adapter was trained on another base, or as from `merge_gguf` and `merge_safetensors`; `out` is
            then not there.
    """
    embedded = base.path.is_file()
    if dtype is not None and not embedded:
        raise ConfigError("--dtype is for GGUF; safetensors keep the types of the base", param="dtype")
    _check_base(specialist.folder, base.fingerprint)
    revision = adapter_revision(specialist.folder)
    name = f"{loaded.contract.mol.served_model}-{specialist.entry.label}"
    with appearing(out, 0) as part:
        if embedded:
            part.mkdir()
            file = part / f"{_ODD.sub('-', name)[:100]}.gguf"
            merged = merge_gguf(base.path, specialist.folder, file, dtype, advance=advance)
            engine = _embedded(loaded.contract.engine, file, merged)
        else:
            merged = merge_safetensors(base.path, specialist.folder, part, advance=advance)
            engine = _served(loaded.contract.engine, name)
        if adapter_revision(specialist.folder) != revision:
            raise ConfigError(
                f"adapter {specialist.folder} changed while it was merged; start again when it is complete"
            )
        write_record(part, _record(loaded, specialist, base, merged, revision))
        _write_profile(part, loaded, specialist.entry, name, engine)
    return load(out / DOCUMENT)


def _check_base(folder: Path, fingerprint: str) -> None:
    trained_on = read_run(folder).base_fingerprint
    if trained_on and fingerprint and trained_on != fingerprint:
        reason = f"was trained on the base {trained_on}, this one is {fingerprint}"
        raise ConfigError(
            f"adapter {folder} {reason}; name the base it was trained on", param="adapter", code="wrong_base"
        )


def _record(loaded: Loaded, specialist: Specialist, base: BaseWeights, merged: Merged, revision: str) -> MergeRecord:
    embedded = base.path.is_file()
    own = base.licence or (read_whole_table(base.path).text("general.license") if embedded else card_licence(base.path))
    return MergeRecord(
        base=Part(loaded.contract.mol.base, base.fingerprint or f"sha256:{merged.base_sha256}", own or UNKNOWN),
        adapter=Part(
            specialist.entry.label,
            revision,
            read_run(specialist.folder).licence or card_licence(specialist.folder) or UNKNOWN,
        ),
        profile=loaded.contract.mol.served_model,
        digest=loaded.digest,
        merged=merged,
    )


def _write_profile(folder: Path, loaded: Loaded, entry: AdapterEntry, name: str, engine: EngineSection) -> None:
    prompts = folder / "prompts"
    prompts.mkdir()
    own = f"prompts/{entry.label}.md"
    (folder / own).write_text(loaded.text(f"mol.adapters.{entry.label}.prompt_path"), "utf-8")
    # Never asked as long as there is one specialist; it is there for the second.
    (prompts / "route.md").write_text(loaded.text("mol.route.prompt_path"), "utf-8")
    if template := loaded.text("engine.llamacpp.chat_template_path", ""):
        (folder / _TEMPLATE).write_text(template, "utf-8")
    contract = Contract(
        mol=_mol(loaded.contract.mol, replace(entry, prompt_path=own), name, engine),
        engine=engine,
        # A file of its own: its sessions are not those of the profile it comes from.
        store=replace(loaded.contract.store, url=StoreSection().url),
        service=loaded.contract.service,
    )
    table = _filled({"version": 1, **{name: _filled(section) for name, section in _sections(contract)}})
    (folder / DOCUMENT).write_text(f"{_comment(entry, loaded, engine, name)}\n{toml_text(table)}", "utf-8")
    load(folder / DOCUMENT)


def _sections(contract: Contract) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((name, section) for name, section in msgspec.to_builtins(contract).items() if name != "version")


def _filled(table: Mapping[str, Any]) -> dict[str, Any]:
    """Without the empty tables, of which some stand for sections that another kind of engine may not have."""
    return {key: value for key, value in table.items() if value != {}}


def _mol(mol: MolSection, entry: AdapterEntry, name: str, engine: EngineSection) -> MolSection:
    return MolSection(
        served_model=name,
        base=name,
        base_fingerprint=f"sha256:{engine.weights.sha256}" if engine.weights else "",
        entry=entry.label,
        default=entry.label,
        route=replace(mol.route, prompt_path="prompts/route.md", examples_path=""),
        adapters=(replace(entry, source="", revision="", engine_name="", model="", rank=None, format=""),),
        reasoning_in_body=mol.reasoning_in_body,
        merge_system=mol.merge_system,
        # Notes are for other specialists.
        summary="off",
    )


def _embedded(engine: EngineSection, file: Path, merged: Merged) -> EngineSection:
    trained = read_gguf(file).context_length or MAX_SLOT_CONTEXT
    section = (
        engine.llamacpp if engine.kind == "llamacpp" else LlamaCppSection(slot_context=min(trained, MAX_SLOT_CONTEXT))
    )
    if section.chat_template_path:
        section = replace(section, chat_template_path=_TEMPLATE)
    sha256, size = merged.files[file.name], file.stat().st_size
    return EngineSection(
        kind="llamacpp",
        special_tokens=engine.special_tokens,
        context_length=engine.context_length,
        weights=WeightsSection(file=file.name, path=file.name, sha256=sha256, size=size),
        llamacpp=section,
        timeouts=engine.timeouts,
    )


def _served(engine: EngineSection, name: str) -> EngineSection:
    running = engine if engine.kind in ("vllm", "sglang") else replace(engine, kind="vllm", address=VLLM_ADDRESS)
    return replace(running, base_model=name, weights=None, llamacpp=LlamaCppSection())


def _comment(entry: AdapterEntry, loaded: Loaded, engine: EngineSection, name: str) -> str:
    lines = [
        f"# {entry.label} of {quoted(loaded.contract.mol.served_model)}, merged into its base; {RECORD_FILE} says how.",
        "# With one specialist nothing is routed; add a second and it is.",
    ]
    if engine.kind != "llamacpp":
        lines.append(
            f"# Its engine serves this folder under that name: vllm serve . --served-model-name {quoted(name)}"
        )
    return "\n".join(lines)
