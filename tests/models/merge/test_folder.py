"""Merging into safetensors: the numbers, what is kept, and what is refused."""

from __future__ import annotations

import errno
import math
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from macaron.errors import ConfigError
from macaron.models.merge import merge_safetensors
from macaron.models.merge.output import Sink
from tests.models import peft_folder
from tests.models.merge.made import (
    RANK,
    SCALE,
    SMALL,
    VOCABULARY,
    adapter_tensors,
    base_weights,
    expected,
    write_folder,
)

Q = "base_model.model.model.layers.0.self_attn.q_proj"
EMBEDDING = "base_model.model.model.embed_tokens.lora_embedding_"
HEAD = "base_model.model.lm_head.lora_"


def peft(folder: Path, weights: dict[str, NDArray[Any]] | None = None, **options: Any) -> Path:
    return peft_folder.write_folder(folder, adapter_tensors() if weights is None else weights, **options)


def merged(tmp_path: Path, base: Path, adapter: Path) -> dict[str, NDArray[Any]]:
    merge_safetensors(base, adapter, tmp_path / "out")
    parts = [load_file(path) for path in sorted((tmp_path / "out").glob("*.safetensors"))]
    return {name: value for part in parts for name, value in part.items()}


def refusal(tmp_path: Path, base: Path, adapter: Path) -> str:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError) as caught:
        merge_safetensors(base, adapter, tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before
    return caught.value.message


def names(files: Iterable[Path]) -> set[str]:
    return {path.name for path in files}


@pytest.mark.parametrize("shards", [1, 3])
def test_every_adapted_weight_is_the_base_plus_the_product(shards: int, tmp_path: Path) -> None:
    weights, adapter = base_weights(), adapter_tensors()
    result = merged(tmp_path, write_folder(tmp_path / "base", weights, shards=shards), peft(tmp_path / "a", adapter))
    assert result.keys() == weights.keys()
    for name, value in expected(weights, adapter).items():
        np.testing.assert_allclose(result[name], value, atol=1e-6)


def test_rows_are_merged_in_blocks_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("macaron.models.merge.folder.BLOCK_ELEMENTS", 5 * SMALL.hidden)
    weights, adapter = base_weights(), adapter_tensors()
    result = merged(tmp_path, write_folder(tmp_path / "base", weights), peft(tmp_path / "a", adapter))
    for name, value in expected(weights, adapter).items():
        np.testing.assert_allclose(result[name], value, atol=1e-6)


def test_a_rank_stabilised_adapter_counts_by_the_root_of_its_rank(tmp_path: Path) -> None:
    weights, adapter = base_weights(), adapter_tensors()
    folder = peft(tmp_path / "a", adapter, use_rslora=True)
    result = merged(tmp_path, write_folder(tmp_path / "base", weights), folder)
    name = "model.layers.1.mlp.up_proj.weight"
    wanted = expected(weights, adapter, 2 * RANK / math.sqrt(RANK))[name]
    np.testing.assert_allclose(result[name], wanted, atol=1e-6)


def test_an_untouched_shard_keeps_its_bytes(tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights(), shards=3)
    weights = {name: value for name, value in adapter_tensors().items() if name.startswith(Q)}
    done = merge_safetensors(base, peft(tmp_path / "a", weights), tmp_path / "out")
    kept = [
        path for path in base.glob("*.safetensors") if path.read_bytes() == (tmp_path / "out" / path.name).read_bytes()
    ]
    assert len(kept) == 2
    assert done.dtypes == {"F32": 1}
    assert len(done.files) == 3


def test_configuration_tokenizer_and_index_come_along_and_nothing_else(tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights(), shards=2)
    merge_safetensors(base, peft(tmp_path / "a"), tmp_path / "out")
    assert names((tmp_path / "out").iterdir()) == names(base.iterdir()) - {"pytorch_model.bin"}
    assert (tmp_path / "out" / "tokenizer.json").read_text() == "{}"


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_the_result_is_rounded_to_the_bases_type(kind: str, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file as load_torch
    from safetensors.torch import save_file as save_torch

    dtype = {"F16": torch.float16, "BF16": torch.bfloat16}[kind]
    halves = {name: torch.tensor(value).to(dtype) for name, value in base_weights().items()}
    base = write_folder(tmp_path / "base", base_weights())
    save_torch(halves, base / "model.safetensors")
    adapter = adapter_tensors()
    done = merge_safetensors(base, peft(tmp_path / "a", adapter), tmp_path / "out")
    result = load_torch(tmp_path / "out" / "model.safetensors")
    wanted = expected({name: value.float().numpy() for name, value in halves.items()}, adapter)
    assert done.dtypes == {kind: 14}
    for name, value in wanted.items():
        assert result[name].dtype == dtype
        # Where the sums differ in their last bit, so may what they are rounded to.
        near = torch.tensor(value).to(dtype).float()
        torch.testing.assert_close(result[name].float(), near, rtol=2**-7 if kind == "BF16" else 2**-10, atol=1e-6)
        assert (result[name].float() == near).float().mean() > 0.99


def test_embeddings_and_output_of_an_untied_base_are_merged(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    weights = base_weights(tied=False)
    base = write_folder(tmp_path / "base", weights, tie_word_embeddings=False)
    a, b = random.normal(size=(RANK, VOCABULARY)), random.normal(size=(SMALL.hidden, RANK))
    head_a, head_b = random.normal(size=(RANK, SMALL.hidden)), random.normal(size=(VOCABULARY, RANK))
    matrices = {f"{EMBEDDING}A": a, f"{EMBEDDING}B": b, f"{HEAD}A.weight": head_a, f"{HEAD}B.weight": head_b}
    adapter = peft(tmp_path / "a", {name: value.astype(np.float32) for name, value in matrices.items()})
    result = merged(tmp_path, base, adapter)
    table, head = "model.embed_tokens.weight", "lm_head.weight"
    np.testing.assert_allclose(result[table], weights[table] + SCALE * (b @ a).T, atol=1e-5)
    np.testing.assert_allclose(result[head], weights[head] + SCALE * head_b @ head_a, atol=1e-5)


@pytest.mark.parametrize("module", ["embedding", "head"])
@pytest.mark.parametrize("told", [True, None], ids=["by its configuration", "by a missing tensor"])
def test_a_table_that_the_base_uses_twice_is_refused_with_the_reason(
    module: str, told: bool | None, tmp_path: Path
) -> None:
    base = write_folder(tmp_path / "base", base_weights(tied=not told), tie_word_embeddings=told)
    if module == "embedding":
        shapes = {f"{EMBEDDING}A": (RANK, VOCABULARY), f"{EMBEDDING}B": (SMALL.hidden, RANK)}
    else:
        shapes = {f"{HEAD}A.weight": (RANK, SMALL.hidden), f"{HEAD}B.weight": (VOCABULARY, RANK)}
    adapter = peft(tmp_path / "a", {name: np.ones(shape, np.float32) for name, shape in shapes.items()})
    assert "one tensor for its embeddings and its output" in refusal(tmp_path, base, adapter)


def test_an_option_that_is_no_plain_lora_is_refused_by_name(tmp_path: Path) -> None:
    said = refusal(tmp_path, write_folder(tmp_path / "base", base_weights()), peft(tmp_path / "a", use_dora=True))
    assert "use_dora" in said
    assert "merge_and_unload()" in said


@pytest.mark.parametrize(
    "key", [f"{Q}.lora_magnitude_vector", "base_model.model.lm_head.weight", f"{Q}.lora_B.bias", "x" * 10_000]
)
def test_a_tensor_that_is_no_lora_matrix_is_refused_by_name(key: str, tmp_path: Path) -> None:
    weights = {**adapter_tensors(), key: np.ones((RANK, SMALL.hidden), np.float32)}
    said = refusal(tmp_path, write_folder(tmp_path / "base", base_weights()), peft(tmp_path / "a", weights))
    assert f"{key[:200]} is no LoRA matrix" in said
    assert len(said) < 1000


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (f"{Q}.lora_B.weight", np.ones((16, RANK), np.float32), "it was trained on another base"),
        (f"{Q}.lora_B.weight", np.ones((32, 5), np.float32), "rank 2 asks for [outputs, 2]"),
        (f"{Q}.lora_B.weight", np.ones((32,), np.float32), "rank 2 asks for"),
        (f"{Q}.lora_B.weight", np.ones((0, RANK), np.float32), "rank 2 asks for"),
        (f"{Q}.lora_B.weight", np.ones((32, RANK), np.int32), "is of type I32"),
        (f"{Q}.lora_B.weight", np.full((32, RANK), np.nan, np.float32), "holds NaN or infinite values"),
        (f"{Q}.lora_B.weight", np.full((32, RANK), np.inf, np.float16), "holds NaN or infinite values"),
        (f"{Q.replace('.0.', '.9.')}.lora_B.weight", np.ones((32, RANK), np.float32), "stands alone"),
    ],
)  # fmt: skip
def test_a_matrix_that_cannot_be_is_refused_by_name(key: str, value: NDArray[Any], reason: str, tmp_path: Path) -> None:
    adapter = peft(tmp_path / "a", {**adapter_tensors(), key: value})
    said = refusal(tmp_path, write_folder(tmp_path / "base", base_weights()), adapter)
    assert reason in said
    assert key.removesuffix("B.weight") in said


def test_a_module_that_the_base_does_not_have_is_refused(tmp_path: Path) -> None:
    weights = {name.replace(".1.", ".7."): value for name, value in adapter_tensors().items()}
    said = refusal(tmp_path, write_folder(tmp_path / "base", base_weights()), peft(tmp_path / "a", weights))
    assert "the base has no tensor model.layers.7." in said


def test_an_adapter_without_effect_is_refused(tmp_path: Path) -> None:
    weights = {name: value * (".lora_A." in name) for name, value in adapter_tensors().items()}
    said = refusal(tmp_path, write_folder(tmp_path / "base", base_weights()), peft(tmp_path / "a", weights))
    assert "it was never trained" in said


def test_an_adapter_without_tensors_is_refused(tmp_path: Path) -> None:
    adapter = peft(tmp_path / "a", {})
    assert "holds no tensors" in refusal(tmp_path, write_folder(tmp_path / "base", base_weights()), adapter)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    adapter = peft(tmp_path / "a")
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    assert "is a pickle" in refusal(tmp_path, write_folder(tmp_path / "base", base_weights()), adapter)


def test_a_base_that_is_quantised_is_refused(tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights(), quantization_config={"quant_method": "awq"})
    assert "the base is quantised ('awq')" in refusal(tmp_path, base, peft(tmp_path / "a"))


def test_a_weight_in_whole_numbers_is_refused(tmp_path: Path) -> None:
    weights: dict[str, NDArray[Any]] = dict(base_weights())
    weights["model.layers.0.self_attn.q_proj.weight"] = np.ones((32, 32), np.int8)
    said = refusal(tmp_path, write_folder(tmp_path / "base", weights), peft(tmp_path / "a"))
    assert "model.layers.0.self_attn.q_proj.weight is of type I8" in said


def test_a_result_beyond_the_bases_type_is_refused(tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", {name: value.astype("f2") for name, value in base_weights().items()})
    weights = {**adapter_tensors(), f"{Q}.lora_B.weight": np.full((32, RANK), 1e6, np.float32)}
    assert "not finite in the base's type F16" in refusal(tmp_path, base, peft(tmp_path / "a", weights))


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_link_out_of_the_bases_folder_is_not_followed(name: str, tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights())
    (base / name).rename(tmp_path / "elsewhere")
    (base / name).symlink_to(tmp_path / "elsewhere")
    assert "is a link out of" in refusal(tmp_path, base, peft(tmp_path / "a"))


def test_an_index_that_is_none_is_refused(tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights(), shards=2)
    (base / "model.safetensors.index.json").write_text("{}")
    assert "model.safetensors.index.json names no tensor" in refusal(tmp_path, base, peft(tmp_path / "a"))


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights())
    (base / "model.safetensors").unlink()
    assert "has neither model.safetensors nor" in refusal(tmp_path, base, peft(tmp_path / "a"))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    base, out = write_folder(tmp_path / "base", base_weights()), tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("kept")
    assert "is there already" in refusal(tmp_path, base, peft(tmp_path / "a"))
    assert (out / "mine").read_text() == "kept"


def test_a_full_disk_leaves_nothing_and_says_how_much_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Sink, source: IO[bytes], start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Sink, "copy", refuse)
    base, adapter = write_folder(tmp_path / "base", base_weights()), peft(tmp_path / "a")
    size = (base / "model.safetensors").stat().st_size
    assert f"the merged model takes {size:,} bytes" in refusal(tmp_path, base, adapter)


def test_a_disk_without_room_is_found_out_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr("macaron.models.merge.output.shutil.disk_usage", lambda _: Usage)
    base, adapter = write_folder(tmp_path / "base", base_weights()), peft(tmp_path / "a")
    assert "is full" in refusal(tmp_path, base, adapter)


def test_a_merge_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    base, adapter = write_folder(tmp_path / "base", base_weights()), peft(tmp_path / "a")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        merge_safetensors(base, adapter, tmp_path / "out", advance=interrupt)
    assert sorted(tmp_path.rglob("*")) == before


def test_progress_ends_with_everything(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    base = write_folder(tmp_path / "base", base_weights(), shards=3)
    merge_safetensors(
        base, peft(tmp_path / "a"), tmp_path / "out", advance=lambda done, total: told.append((done, total))
    )
    size = sum(path.stat().st_size for path in (tmp_path / "out").glob("*.safetensors"))
    assert told[-1] == (size, size)
    assert told == sorted(told)


def test_the_result_says_what_was_done(tmp_path: Path) -> None:
    base = write_folder(tmp_path / "base", base_weights())
    done = merge_safetensors(base, peft(tmp_path / "a"), tmp_path / "out")
    assert (done.rank, done.scale, done.dtypes, done.tensors) == (RANK, SCALE, {"F32": 14}, len(base_weights()))
    again = merge_safetensors(base, tmp_path / "a", tmp_path / "again")
    assert msgspec.to_builtins(done) == msgspec.to_builtins(again)
