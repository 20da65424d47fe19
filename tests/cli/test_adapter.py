"""`macaron adapter check`, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from macaron.cli import build_cli
from macaron.models import Dimensions
from macaron.profiles import find_profile
from macaron.registry.revision import adapter_revision
from tests.models.peft_folder import tensors, write_folder

SMOLLM = Dimensions(layers=30, hidden=576, feed_forward=1536, heads=9, kv_heads=3, head_width=64)
L0 = find_profile("demi").parent / "adapters" / "L0"


def check(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(build_cli(), ["adapter", "check", *map(str, arguments)], env={"COLUMNS": "100"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_shipped_adapter_is_in_order(weights: Path) -> None:
    result = check(L0, "--no-probe")
    assert result.exit_code == 0
    assert "L0 can be registered: 0 errors" in result.output
    assert adapter_revision(L0) in result.output


def test_errors_are_all_shown_with_remedies_and_the_status_is_1(tmp_path: Path, weights: Path) -> None:
    folder = write_folder(tmp_path / "a", use_dora=True, target_modules=["[bold]q_proj"])
    result = check(folder, "--no-probe")
    assert result.exit_code == 1
    for part in ("cannot be registered", "unsupported_option", "Train without it", "[shape]", "[bold]q_proj"):
        assert part in result.output


def test_an_adapter_with_errors_is_not_probed(tmp_path: Path, weights: Path) -> None:
    report = json.loads(check(write_folder(tmp_path / "a"), "--json").output)
    assert not report["ok"]
    assert report["findings"][-1]["code"] == "probe_skipped"


def test_the_json_is_the_whole_report(weights: Path) -> None:
    report = json.loads(check(L0, "--no-probe", "--json").output)
    assert report["ok"]
    assert report["revision"] == adapter_revision(L0)
    assert (report["rank"], report["dtype"]) == (8, "F16")


def test_a_link_is_refused_and_the_way_to_a_folder_may_be_relative(
    tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(L0)
    assert "[link]" in check(tmp_path / "link", "--no-probe").output
    monkeypatch.chdir(L0)
    assert check("../L0", "--no-probe").exit_code == 0
    assert check(".", "--no-probe").exit_code == 0


def test_on_another_engine_the_probe_is_left_to_registration(weights: Path) -> None:
    report = json.loads(check(L0, "--profile", "venti", "--json").output)
    assert {"base_unknown", "base_name", "probe_skipped"} <= {item["code"] for item in report["findings"]}


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(300)
def test_the_shipped_adapter_moves_the_engine_and_a_tiny_one_does_not(tmp_path: Path, weights: Path) -> None:
    moved = json.loads(check(L0, "--json").output)
    assert moved["findings"][-1]["code"] == "probe_effect"
    still = {name: values if "lora_A" in name else values * 1e-6 for name, values in tensors(SMOLLM, 8).items()}
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    folder = write_folder(tmp_path / "a", still, r=8, lora_alpha=16, target_modules=targets)
    result = check(folder, "--json")
    assert result.exit_code == 1
    finding = json.loads(result.output)["findings"][-1]
    assert (finding["severity"], finding["code"]) == ("error", "probe_no_effect")
    assert np.abs(still[next(iter(still))]).max() > 0
