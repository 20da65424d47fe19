"""One adapter in order, and one for each thing that can be wrong with options, names, shapes and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from macaron.registry.check import Limits, check_adapter
from macaron.registry.revision import adapter_revision
from tests.models.peft_folder import BLOCK, TINY, tensors
from tests.registry.check.adapters import FIRST_A, FIRST_B, FULL, adapter, changed, errors, found, tiny_base


def test_an_adapter_in_order_has_no_error_and_says_what_it_is(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "a")
    (folder / "README.md").write_text("---\nbase: x\nlicense: apache-2.0\n---\nwords")
    (folder / "run.json").write_text(
        json.dumps({
            "id": "L4-1", "status": "finished", "created": "2026-11-30T00:00:00Z", "base_fingerprint": FULL,
            "data": [{"path": "d", "sha256": "sha256:1", "rows": 1, "tokens": 2}],
            "adapter": {"revision": adapter_revision(folder)},
        })
    )  # fmt: skip
    report = check_adapter(folder, tiny_base())
    assert report.findings == ()
    assert report.revision == adapter_revision(folder)
    assert (report.rank, report.alpha, report.dtype) == (2, 4.0, "F32")
    assert report.values == sum(values.size for values in tensors().values())
    assert report.licence == "apache-2.0"
    assert report.base_fingerprint == FULL
    assert report.provenance is not None
    assert report.provenance.data == ("sha256:1",)


def test_everything_wrong_is_found_at_once(tmp_path: Path) -> None:
    weights = changed(
        {FIRST_A: None, FIRST_B: np.full((16, 2), np.nan, np.float32), "lm_head.weight": np.ones(3, "f4")}
    )
    folder = adapter(tmp_path / "a", weights, r=3, use_dora=True, lora_alpha=-1)
    (folder / "old.pt").write_bytes(b"anything")
    assert set(errors(folder)) == {
        "pickle", "unsupported_option", "bad_alpha", "unknown_key", "unpaired", "rank_mismatch", "not_finite",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"peft_type": "IA3"}, "not_lora"),
        ({"r": 0}, "bad_rank"),
        ({"r": True}, "bad_rank"),
        ({"lora_alpha": "16"}, "bad_alpha"),
        ({"use_dora": True}, "unsupported_option"),
        ({"modules_to_save": ["lm_head"]}, "unsupported_option"),
        ({"rank_pattern": {"q_proj": 4}}, "unsupported_option"),
        ({"init_lora_weights": "pissa"}, "unsupported_option"),
        ({"init_lora_weights": 1}, "unsupported_option"),
        ({"auto_mapping": {"parent_library": "os"}}, "runs_code"),
        ({"megatron_config": {"x": 1}}, "runs_code"),
        ({"use_rslora": "yes"}, "bad_config"),
        ({"target_modules": [1]}, "bad_config"),
        ({"target_modules": ["q_proj", "in_proj"]}, "unknown_target"),
        ({"layers_to_transform": [0, 7]}, "unknown_layer"),
        ({"target_modules": ["q_proj"]}, "outside_targets"),
    ],
)
def test_an_option_that_is_wrong_is_an_error(options: dict[str, Any], code: str, tmp_path: Path) -> None:
    assert code in errors(adapter(tmp_path / "a", **options))


def test_options_that_change_nothing_are_accepted(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "lora_dropout": 0.1,
        "use_rslora": True,
        "init_lora_weights": "gaussian",
        "target_modules": "all-linear",
    }
    assert errors(adapter(tmp_path / "a", **options)) == {}


def test_a_rank_above_the_engines_maximum_is_an_error(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "a")
    assert "2 or more" in errors(folder, Limits(max_rank=1))["rank_too_high"].remedy
    assert errors(folder, Limits(max_rank=2)) == {}


def test_a_rank_above_what_the_engine_takes_by_default_is_a_warning(tmp_path: Path) -> None:
    finding = found(adapter(tmp_path / "a"), Limits(usual_rank=1))["rank_limit"]
    assert (finding.severity, finding.value) == ("warning", "2")
    assert "--max-lora-rank 2" in finding.remedy


@pytest.mark.parametrize(
    ("rename", "remedy"),
    [
        (lambda key: key.removeprefix("base_model."), "save_pretrained"),
        (lambda key: "base_model.model." + key, "save_pretrained"),
        (lambda key: key.replace(".weight", ".default.weight"), "not with the model's state dict"),
        (lambda key: key.replace("lora_", "lora_embedding_"), "without embeddings"),
        (lambda key: key.replace("lora_", "lokr_"), "plain LoRA"),
        (lambda key: key + "." + "x" * 600, "plain LoRA"),
    ],
)
def test_keys_that_engines_ignore_are_one_error(rename: Any, remedy: str, tmp_path: Path) -> None:
    weights = {rename(key): values for key, values in tensors().items()}
    finding = errors(adapter(tmp_path / "a", weights))["unknown_key"]
    assert finding.value.startswith(f"{len(weights)}: ")
    assert remedy in finding.remedy


def test_a_layer_that_the_base_does_not_have_is_an_error(tmp_path: Path) -> None:
    weights = tensors(TINY.__class__(3, 16, 24, 4, 2, 4))
    finding = errors(adapter(tmp_path / "a", weights))["unknown_module"]
    assert f"{BLOCK}.2." in finding.value


def test_an_adapter_for_a_wider_base_is_an_error_with_both_sizes(tmp_path: Path) -> None:
    report = check_adapter(adapter(tmp_path / "a", tensors(replace(TINY, hidden=32))), tiny_base())
    messages = [item.message for item in report.findings if item.code == "shape"]
    assert any("32 inputs" in message and "has 16" in message for message in messages)


def test_a_matrix_with_a_third_axis_is_an_error(tmp_path: Path) -> None:
    assert "shape" in errors(adapter(tmp_path / "a", changed({FIRST_A: np.ones((2, 16, 1), "f4")})))


def test_a_matrix_without_its_partner_is_an_error(tmp_path: Path) -> None:
    finding = errors(adapter(tmp_path / "a", changed({FIRST_B: None})))["unpaired"]
    assert finding.value == FIRST_A
    assert "lora_B" in finding.message


def test_another_rank_than_the_options_say_is_an_error(tmp_path: Path) -> None:
    finding = errors(adapter(tmp_path / "a", r=4))["rank_mismatch"]
    assert "rank 2" in finding.message
    assert "is 4" in finding.message


def test_layers_that_were_not_saved_are_a_warning(tmp_path: Path) -> None:
    weights = {key: values for key, values in tensors().items() if ".1.mlp.up_proj" not in key}
    assert found(adapter(tmp_path / "a", weights))["missing_layers"].value == "model.layers.1.mlp.up_proj"
    options = {"layers_to_transform": [0, 1]}
    assert "missing_layers" not in found(adapter(tmp_path / "b", weights, **options))


def test_a_target_without_tensors_is_a_warning(tmp_path: Path) -> None:
    weights = {key: values for key, values in tensors().items() if "up_proj" not in key}
    assert found(adapter(tmp_path / "a", weights))["empty_target"].value == "up_proj"


def test_a_file_without_tensors_is_an_error(tmp_path: Path) -> None:
    assert "no_tensors" in errors(adapter(tmp_path / "a", {}))


@pytest.mark.parametrize("kind", ["f8", "i4"])
def test_numbers_that_engines_do_not_apply_are_an_error(kind: str, tmp_path: Path) -> None:
    weights = {key: values.astype(kind) for key, values in tensors().items()}
    assert errors(adapter(tmp_path / "a", weights))["dtype"].value in ("F64", "I32")


@pytest.mark.parametrize("kind", ["f4", "f2", "bf16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_an_error(kind: str, value: float, tmp_path: Path) -> None:
    broken = tensors()[FIRST_B].copy()
    broken[3, 1] = value
    finding = errors(_saved(tmp_path / "a", changed({FIRST_B: broken}), kind))["not_finite"]
    assert finding.value == FIRST_B


@pytest.mark.parametrize(("kind", "value"), [("f4", 65_505.0), ("f4", -1e30), ("bf16", 1e30)])
def test_numbers_that_16_bits_do_not_hold_are_an_error(kind: str, value: float, tmp_path: Path) -> None:
    large = tensors()[FIRST_B].copy()
    large[0, 0] = value
    assert set(errors(_saved(tmp_path / "a", changed({FIRST_B: large}), kind))) == {"too_large_values"}


@pytest.mark.parametrize("kind", ["f4", "f2", "bf16"])
def test_the_largest_numbers_of_16_bits_are_accepted(kind: str, tmp_path: Path) -> None:
    large = tensors()[FIRST_B].copy()
    large[0, 0] = 65_504.0 if kind != "bf16" else 65_280.0
    assert errors(_saved(tmp_path / "a", changed({FIRST_B: large}), kind)) == {}


@pytest.mark.parametrize("kind", ["f4", "f2", "bf16"])
def test_an_adapter_that_was_never_trained_is_an_error(kind: str, tmp_path: Path) -> None:
    weights = {key: -0.0 * values if "lora_B" in key else values for key, values in tensors().items()}
    assert set(errors(_saved(tmp_path / "a", weights, kind))) == {"no_effect"}


def test_some_layers_without_effect_are_a_warning(tmp_path: Path) -> None:
    finding = found(adapter(tmp_path / "a", changed({FIRST_B: np.zeros((16, 2), "f4")})))["zero_layers"]
    assert finding.severity == "warning"
    assert FIRST_B in finding.value


def test_a_name_of_another_base_is_a_warning(tmp_path: Path) -> None:
    assert found(adapter(tmp_path / "a", base_model_name_or_path="x/Other"))["base_name"].value == "x/Other"
    assert "no_base_name" in found(adapter(tmp_path / "b", base_model_name_or_path=None))


def test_without_a_base_the_rest_is_still_checked(tmp_path: Path) -> None:
    report = check_adapter(adapter(tmp_path / "a", changed({FIRST_B: None})), None)
    assert {"base_unknown", "unpaired"} <= {item.code for item in report.findings}
    assert report.base_fingerprint == ""


def test_more_findings_than_anyone_reads_are_counted(tmp_path: Path) -> None:
    options: dict[str, Any] = {f"x{number}": 1 for number in range(300)}
    report = check_adapter(adapter(tmp_path / "a", **options), tiny_base())
    assert len(report.findings) == 201
    assert report.findings[-1].code == "more_findings"


def _saved(folder: Path, weights: Any, kind: str) -> Path:
    if kind != "bf16":
        return adapter(folder, {key: values.astype(kind) for key, values in weights.items()})
    bits = {key: (values.astype("<f4").view("<u4") >> 16).astype("<u2") for key, values in weights.items()}
    path = adapter(folder, bits) / "adapter_model.safetensors"
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length].replace(b'"U16"', b'"BF16"').rstrip()
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw[8 + length :])
    return folder
