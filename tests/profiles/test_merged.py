"""A merged specialist is a profile of its own, or nothing is there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import macaron.profiles
from macaron.cli import build_cli
from macaron.errors import ConfigError
from macaron.hcp import Loaded, load
from macaron.models import fetch_weights, sha256_of, silent
from macaron.profiles import find_profile
from macaron.profiles.merged import BaseWeights, find_specialist, merge_profile
from macaron.registry.cards import registry_from
from macaron.registry.revision import adapter_revision
from tests.models.merge.made import adapter_tensors, base_weights, write_folder, write_gguf_base
from tests.models.peft_folder import write_folder as write_adapter


@pytest.fixture
def profile(tmp_path: Path) -> Loaded:
    """`demi` on a base of two layers, with an adapter for L1 only."""
    folder = tmp_path / "profile"
    shipped = Path(macaron.profiles.__file__).parent / "demi"
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("adapters"))
    base = write_gguf_base(folder / "base.gguf", base_weights(), "Q4_1")
    write_adapter(folder / "adapters" / "L1", adapter_tensors())
    text = (folder / "profile.toml").read_text()
    head, _, _ = text.partition("[engine.weights]")
    head = "\n".join(line for line in head.splitlines() if not line.startswith(("base_fingerprint", "source")))
    head = head.replace('label = "L1"', 'label = "L1"\nsource = "adapters/L1"')
    sha256 = sha256_of(base, silent)
    weights = f'\n[engine.weights]\nfile = "base.gguf"\npath = "base.gguf"\nsha256 = "{sha256}"\n'
    (folder / "profile.toml").write_text(
        head + weights + '[store]\nurl = "sqlite:////var/theirs.db"\nmax_sessions = 7\n'
    )
    return load(folder / "profile.toml")


def base_of(profile: Loaded) -> BaseWeights:
    section = profile.contract.engine.weights
    assert section is not None
    return BaseWeights(profile.folder / section.path, f"sha256:{section.sha256}")


def merged(profile: Loaded, out: Path, base: BaseWeights | None = None) -> Loaded:
    return merge_profile(profile, find_specialist(profile, "L1"), base or base_of(profile), out)


def record(out: Path) -> Any:
    return json.loads((out / "macaron-merge.json").read_text())


def run(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(build_cli(), ["merge", *arguments], catch_exceptions=status == 1)
    assert result.exit_code == status, result.output
    return result.exception.message if isinstance(result.exception, ConfigError) else result.stdout


def test_the_result_has_one_specialist_on_the_bare_merged_base(profile: Loaded, tmp_path: Path) -> None:
    loaded = merged(profile, tmp_path / "out")
    mol = loaded.contract.mol
    (specialist,) = registry_from(loaded).specialists
    assert (mol.served_model, mol.entry, mol.default, mol.summary) == ("macaron-demi-L1", "L1", "L1", "off")
    assert specialist.adapter is None
    assert specialist.identity == profile.text("mol.adapters.L1.prompt_path").strip()
    assert specialist.description == registry_from(profile).specialists[1].description


def test_the_engine_is_given_the_merged_weights_and_the_profiles_template(profile: Loaded, tmp_path: Path) -> None:
    loaded = merged(profile, tmp_path / "out")
    engine = loaded.contract.engine
    assert engine.weights is not None
    path = fetch_weights(engine.weights, folder=loaded.folder, cache_dir=tmp_path / "cache")
    assert path == tmp_path / "out" / "macaron-demi-L1.gguf"
    assert loaded.contract.mol.base_fingerprint == f"sha256:{engine.weights.sha256}"
    assert engine.special_tokens == profile.contract.engine.special_tokens
    template = "engine.llamacpp.chat_template_path"
    assert loaded.text(template) == profile.text(template)


def test_the_sessions_are_not_those_of_the_profile_it_comes_from(profile: Loaded, tmp_path: Path) -> None:
    store = merged(profile, tmp_path / "out").contract.store
    assert (store.url, store.max_sessions) == ("sqlite://", 7)


def test_the_record_names_base_adapter_licences_and_method(profile: Loaded, tmp_path: Path) -> None:
    source = profile.folder / "adapters" / "L1"
    (source / "README.md").write_text("---\nbase_model: x\nlicense: mit\n---\n# Card\n")
    merged(profile, tmp_path / "out")
    said, base = record(tmp_path / "out"), base_of(profile)
    wanted = {"name": "SmolLM2-135M-Instruct", "revision": base.fingerprint, "licence": "apache-2.0"}
    assert said["base"] == wanted
    assert said["adapter"] == {"name": "L1", "revision": adapter_revision(source), "licence": "mit"}
    assert said["digest"] == profile.digest
    assert said["merged"]["dtypes"] == {"Q8_0": 14}
    assert "float32" in said["method"]


def test_a_folder_of_safetensors_becomes_a_profile_for_vllm(profile: Loaded, tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights(), shards=2)
    loaded = merged(profile, tmp_path / "out", BaseWeights(base))
    engine = loaded.contract.engine
    assert (engine.kind, engine.base_model, engine.weights) == ("vllm", "macaron-demi-L1", None)
    assert registry_from(loaded).specialists[0].adapter is None
    said = record(tmp_path / "out")
    assert said["base"]["revision"] == f"sha256:{said['merged']['base_sha256']}"
    assert said["merged"]["files"].keys() == {path.name for path in base.glob("*.safetensors")}
    assert (tmp_path / "out" / "chat_template.jinja").is_file()


def test_an_adapter_of_another_base_is_refused_and_nothing_is_left(profile: Loaded, tmp_path: Path) -> None:
    run_record = {"label": "L1", "base_fingerprint": "sha256:" + "0" * 64}
    (profile.folder / "adapters" / "L1" / "run.json").write_text(json.dumps(run_record))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="was trained on the base sha256:000"):
        merged(profile, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_a_broken_adapter_leaves_nothing(profile: Loaded, tmp_path: Path) -> None:
    (profile.folder / "adapters" / "L1" / "adapter_model.safetensors").write_bytes(b"\xff" * 64)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="not a usable safetensors file"):
        merged(profile, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


def test_a_served_name_that_is_no_file_name_stays_inside_the_folder(profile: Loaded, tmp_path: Path) -> None:
    text = profile.path.read_text()
    profile.path.write_text(text.replace('"macaron-demi"', '"../org/a b\\n[mol]"'))
    loaded = merged(load(profile.path), tmp_path / "out")
    assert loaded.contract.mol.served_model == "../org/a b\n[mol]-L1"
    assert [path.name for path in (tmp_path / "out").glob("*.gguf")] == ["-.-org-a-b--mol--L1.gguf"]


@pytest.mark.parametrize("text", ["[]", '{"label": 3}', "[" * 5000, "{"])
def test_a_record_of_a_run_that_is_none_is_refused(text: str, profile: Loaded, tmp_path: Path) -> None:
    (profile.folder / "adapters" / "L1" / "run.json").write_text(text)
    with pytest.raises(ConfigError, match="is not the record of a run"):
        merged(profile, tmp_path / "out")


@pytest.mark.parametrize(
    ("adapter", "label", "reason"),
    [
        ("L9", "", "the profile has no specialist 'L9'; there are L0, L1, L2, L3"),
        ("L2", "", "L2 has no adapter whose bytes are here"),
        ("L1", "L2", "--label is for an adapter that is given by its path"),
        ("./nowhere", "L1", "there is no folder nowhere"),
    ],
)
def test_an_adapter_that_is_not_there_is_refused(adapter: str, label: str, reason: str, profile: Loaded) -> None:
    with pytest.raises(ConfigError, match=reason):
        find_specialist(profile, adapter, label)


def test_an_adapter_by_its_path_is_the_specialist_its_run_or_the_caller_says(profile: Loaded, tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "mine", adapter_tensors())
    with pytest.raises(ConfigError, match="give --label with one of L0, L1, L2, L3"):
        find_specialist(profile, str(path))
    assert find_specialist(profile, str(path), "L2").entry.label == "L2"
    (path / "run.json").write_text('{"label": "L3"}')
    assert find_specialist(profile, str(path)).entry.label == "L3"


def test_the_command_writes_a_profile_and_says_how_to_serve_it(profile: Loaded, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = run("--profile", str(profile.path), "--adapter", "L1", "--out", str(out))
    assert said.splitlines() == [
        str(out / "profile.toml"),
        load(out / "profile.toml").digest,
        f"serve it: macaron serve --profile {out}",
    ]


def test_the_command_takes_another_base_and_type(profile: Loaded, tmp_path: Path) -> None:
    base = write_gguf_base(tmp_path / "f16.gguf", base_weights(), "F16")
    named = ("--profile", str(profile.path), "--adapter", "L1", "--base", str(base))
    run(*named, "--dtype", "f32", "--out", str(tmp_path / "out"))
    assert record(tmp_path / "out")["merged"]["dtypes"] == {"F32": 14}


def test_a_base_that_is_not_the_profiles_is_refused(profile: Loaded, tmp_path: Path) -> None:
    text = profile.path.read_text().replace("[mol]", f'[mol]\nbase_fingerprint = "{base_of(profile).fingerprint}"')
    profile.path.write_text(text)
    base = write_gguf_base(tmp_path / "f16.gguf", base_weights(), "F16")
    named = ("--profile", str(profile.path), "--adapter", "L1", "--base", str(base))
    assert "but mol.base_fingerprint is" in run(*named, "--out", str(tmp_path / "out"), status=1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--dtype", "q4_0"), "--dtype 'q4_0' is not one of q8_0, f16, f32"),
        (("--format", "onnx"), "--format 'onnx' is not one of gguf, safetensors"),
        (("--base", "/nowhere"), "there is no base at /nowhere"),
        (("--base", "BASE", "--format", "safetensors"), "nothing is converted between the two"),
        (("--base", "FOLDER", "--dtype", "f16"), "--dtype is for GGUF"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: tuple[str, ...], reason: str, profile: Loaded, tmp_path: Path
) -> None:
    places = {"BASE": str(base_of(profile).path), "FOLDER": str(tmp_path / "base")}
    write_folder(tmp_path / "base", base_weights())
    given = [places.get(option, option) for option in options]
    out = tmp_path / "out"
    said = run("--profile", str(profile.path), "--adapter", "L1", "--out", str(out), *given, status=1)
    assert reason in said
    assert not out.exists()


def test_a_profile_without_weights_needs_a_base(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "mine", adapter_tensors())
    named = ("--profile", "tall", "--adapter", str(adapter), "--label", "L2", "--out", str(tmp_path / "out"))
    assert "give --base with FILE.gguf or a folder" in run(*named, status=1)
    base = write_folder(tmp_path / "base", base_weights())
    run(*named, "--base", str(base))
    engine = load(tmp_path / "out" / "profile.toml").contract.engine
    wanted = load(find_profile("tall")).contract.engine
    assert (engine.kind, engine.address) == (wanted.kind, wanted.address)


def test_help_gives_examples() -> None:
    assert "macaron merge --adapter" in run("--help")
