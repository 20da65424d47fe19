"""Writing a new profile: four specialists that are prompts on any model, ready to be served and to be edited."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from macaron.errors import ConfigError
from macaron.hcp import Loaded, load
from macaron.models import Progress, read_gguf, sha256_of, silent
from macaron.profiles import DOCUMENT
from macaron.profiles.base import Base, GgufBase, HubBase, ServerBase
from macaron.profiles.toml import quoted

VLLM_ADDRESS = "http://127.0.0.1:8000"
MAX_SLOT_CONTEXT = 8192
_UNKNOWN_CONTEXT = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# What the tokenizers of the usual families take for control tokens, for models whose own list cannot be read here.
_USUAL_CONTROL_TOKENS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_sep|>"),
    *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
    *("<|python_tag|>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|end|>", "[gMASK]", "<sop>"),
    *("<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "[INST]", "[/INST]"),
    *("<|start|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
)


def new_profile(name: str, base: Base, folder: Path, *, progress: Progress = silent) -> Loaded:
    """Write `folder` with a contract and its prompts, and load it as proof that it is in order.

    Args:
        name: also the name of the served model.
        progress: is told while a model file is hashed.

    Raises:
        ConfigError: the name or the base is unusable, or `folder` is there and not empty.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a name: letters, digits, '.', '_' and '-', 64 at most", param="name")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already and not empty; choose another with --out", param="out")
    engine = _engine(base, progress)
    document = "\n".join([_model(name, base), _starter("adapters.toml").read_text("utf-8"), engine])
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
            draft = Path(scratch) / "profile"
            shutil.copytree(_starter("prompts"), draft / "prompts")
            (draft / DOCUMENT).write_text(document, "utf-8")
            load(draft / DOCUMENT)
            # A rename onto an empty folder is atomic: whoever looks sees a whole profile or none.
            draft.replace(folder)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}", param="out") from None
    return load(folder / DOCUMENT)


def _model(name: str, base: Base) -> str:
    return _lines(
        "# Edit freely: `macaron profile check` says whether it still holds together, and its digest.",
        "version = 1",
        "",
        "[mol]",
        f"served_model = {quoted(name)}",
        f"base = {quoted(_base_name(base))}",
        'entry = "L0"',
        'default = "L2"',
        f'summary = "{"idle" if isinstance(base, GgufBase) else "eager"}"',
        'summary_prompt_path = "prompts/summary.md"',
        "",
        "[mol.route]",
        'prompt_path = "prompts/route.md"',
        'shape = "instruction_first"',
    )


def _base_name(base: Base) -> str:
    match base:
        case GgufBase(path):
            return path.stem
        case HubBase(model_id):
            return model_id
        case ServerBase(_, model):
            return model


def _engine(base: Base, progress: Progress) -> str:
    match base:
        case GgufBase(path):
            return _embedded(path, progress)
        case HubBase(model_id):
            return _running("vllm", VLLM_ADDRESS, model_id)
        case ServerBase(origin, model):
            return _running("openai", origin, model)


def _embedded(path: Path, progress: Progress) -> str:
    info = read_gguf(path)
    trained = info.context_length or _UNKNOWN_CONTEXT
    return _lines(
        "[engine]",
        'kind = "llamacpp"',
        f"special_tokens = {_array(info.control_tokens)}",
        "",
        f"# The model was trained for {trained} tokens. A longer slot takes more memory, {trained} is the most.",
        "[engine.llamacpp]",
        f"slot_context = {min(trained, MAX_SLOT_CONTEXT)}",
        "",
        "[engine.weights]",
        f"file = {quoted(path.name)}",
        f"path = {quoted(path.as_posix())}",
        f'sha256 = "{sha256_of(path, progress)}"',
        f"size = {path.stat().st_size}",
    )


def _running(kind: str, address: str, model: str) -> str:
    return _lines(
        "[engine]",
        f'kind = "{kind}"',
        f"address = {quoted(address)}",
        f"base_model = {quoted(model)}",
        "# The usual families' control tokens; complete them from your model's tokenizer.",
        f"special_tokens = {_array(_USUAL_CONTROL_TOKENS)}",
    )


def _array(items: Sequence[str]) -> str:
    # What is no printable text, such as half a character, a client cannot send as that token either.
    usable = [item for item in items if len(item) <= 128 and item.isprintable()]
    return "[\n" + "".join(f"    {quoted(item)},\n" for item in usable) + "]" if usable else "[]"


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _starter(name: str) -> Path:
    return Path(__file__).parent / "starter" / name
